//! A blob as it is stored: the base blob in the head row of its name, snapshots in rows of their own.
//!
//! ```text
//! record = u8 format (1) u8 type u8 flags (1 sealed, 2 tier inferred, 4 encryption, 8 version)
//!          u64 created, u64 modified, u64 etag, varint size
//!          text type, text encoding, text language, text disposition, text cache control, text md5 (Base64)
//!          pairs metadata, pairs tags
//!          text tier, number tier changed at, text archive status, text rehydrate priority
//!          varint sequence number, varint appended blocks
//!          u8 copy is there [copy], number deleted at, varint retention days
//!          [text SHA-256 of the key, text scope], [u64 version], content
//! copy   = text id, text source, text status, text status description, varint done, varint total,
//!          number completed at
//! ```
//!
//! Texts and numbers that may be missing are drawn in `fields.rs`. The row's start, with the pieces of the
//! content or the length of its overflow, precedes all of this.

use crate::condition::Present;
use crate::content::{BlockContent, Content};
use crate::encryption::Encryption;
use crate::error::BlobError;
use crate::name::Pairs;
use crate::rows::fields::{put_number, put_pairs, put_text, take_number, take_pairs, take_text};
use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use partition::RowStart;

const FORMAT: u8 = 1;
const SEALED: u8 = 1;
const TIER_INFERRED: u8 = 2;
const ENCRYPTION: u8 = 4;
const VERSIONED: u8 = 8;

/// What kind of blob it is, for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub enum BlobType {
    Block,
    Append,
    Page,
}

impl BlobType {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            BlobType::Block => "BlockBlob",
            BlobType::Append => "AppendBlob",
            BlobType::Page => "PageBlob",
        }
    }
}

/// What HTTP says of the content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Each is the header of its name.
pub struct ContentProperties {
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_disposition: Option<String>,
    pub cache_control: Option<String>,
    /// Base64.
    pub content_md5: Option<String>,
}

/// How a copy into the blob stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Each is the header of its name.
pub struct CopyState {
    pub id: String,
    pub source: String,
    pub status: String,
    pub description: Option<String>,
    pub done: u64,
    pub total: u64,
    pub completed_at: Option<Ticks>,
}

/// Which version of its name a blob is, and when it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobVersion {
    /// Its id, if it was written while versions were kept.
    pub id: Option<u64>,
    /// When the blob was first made.
    pub created_at: Ticks,
    /// When content, properties or metadata last changed.
    pub modified_at: Ticks,
    /// The row version of that change.
    pub etag: u64,
}

/// The access tier of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierState {
    /// Its name; `None`: not told, for append blobs.
    pub name: Option<String>,
    /// No request has set it.
    pub inferred: bool,
    /// When it was set.
    pub changed_at: Option<Ticks>,
    /// Where a rehydration goes.
    pub archive_status: Option<String>,
    /// How fast.
    pub rehydrate_priority: Option<String>,
}

/// What blobs of one type have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeState {
    /// Of a page blob.
    pub sequence_number: u64,
    /// Of an append blob: appends so far.
    pub appended_blocks: u64,
    /// Of an append blob: no more appends.
    pub sealed: bool,
}

/// One blob or snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRecord {
    /// Its kind.
    pub blob_type: BlobType,
    /// Which version it is.
    pub version: BlobVersion,
    /// Its bytes.
    pub size: u64,
    /// What HTTP says of them.
    pub properties: ContentProperties,
    /// Metadata.
    pub metadata: Pairs,
    /// Tags.
    pub tags: Pairs,
    /// The access tier.
    pub tier: TierState,
    /// What only its type has.
    pub by_type: TypeState,
    /// The copy that made it.
    pub copy: Option<CopyState>,
    /// It is deleted, and can come back for so many days.
    pub deleted: Option<Deletion>,
    /// What it was encrypted with.
    pub encryption: Encryption,
    /// Where its bytes are.
    pub content: Content,
}

/// When something was deleted that can come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// When.
    pub at: Ticks,
    /// For how long it is kept.
    pub days: u32,
}

impl Deletion {
    /// Days left at `now`; `None`: it is gone.
    pub fn days_left(self, now: Ticks) -> Option<u64> {
        let day = 86_400 * base::clock::TICKS_PER_SECOND;
        let end = self.at.0 + u64::from(self.days) * day;
        (end > now.0).then(|| (end - now.0) / day)
    }
}

impl BlobRecord {
    /// A new blob without content.
    pub(crate) fn new(blob_type: BlobType, now: Ticks) -> Self {
        let content = match blob_type {
            BlobType::Page => Content::Pages(0),
            _ => Content::Blocks(BlockContent::default()),
        };
        BlobRecord {
            blob_type,
            version: BlobVersion { id: None, created_at: now, modified_at: now, etag: now.0 },
            size: 0,
            properties: ContentProperties::default(),
            metadata: Pairs::new(),
            tags: Pairs::new(),
            tier: TierState {
                name: (blob_type == BlobType::Block).then(|| "Hot".to_owned()),
                inferred: true,
                changed_at: None,
                archive_status: None,
                rehydrate_priority: None,
            },
            by_type: TypeState::default(),
            copy: None,
            deleted: None,
            encryption: Encryption::default(),
            content,
        }
    }

    /// Content, properties or metadata have changed.
    pub(crate) fn touch(&mut self, now: Ticks) {
        self.version.modified_at = now;
        self.version.etag = now.0;
    }

    /// What conditions look at.
    pub fn present(&self) -> Present<'_> {
        Present { etag: self.version.etag, modified_at: self.version.modified_at, tags: &self.tags }
    }

    /// Whether its bytes can't be read because it is archived.
    pub fn is_archived(&self) -> bool {
        self.tier.name.as_deref() == Some("Archive")
    }

    /// Whether its bytes can be read, and what it says of itself be changed. Nothing is archived anywhere,
    /// but in Azure they could not.
    pub(crate) fn check_online(&self, may_be_archived: bool) -> Result<(), BlobError> {
        match () {
            () if self.tier.archive_status.is_some() => Err(BlobError::BlobBeingRehydrated),
            () if self.is_archived() && !may_be_archived => Err(BlobError::BlobArchived),
            () => Ok(()),
        }
    }

    /// Appends the stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8_field(FORMAT);
        out.put_u8_field(match self.blob_type {
            BlobType::Block => 0,
            BlobType::Append => 1,
            BlobType::Page => 2,
        });
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let has_encryption = self.encryption != Encryption::default();
        out.put_u8_field(
            flag(self.by_type.sealed, SEALED)
                | flag(self.tier.inferred, TIER_INFERRED)
                | flag(has_encryption, ENCRYPTION)
                | flag(self.version.id.is_some(), VERSIONED),
        );
        out.put_u64_field(self.version.created_at.0);
        out.put_u64_field(self.version.modified_at.0);
        out.put_u64_field(self.version.etag);
        out.put_varint(self.size);
        let properties = &self.properties;
        put_text(out, properties.content_type.as_deref());
        put_text(out, properties.content_encoding.as_deref());
        put_text(out, properties.content_language.as_deref());
        put_text(out, properties.content_disposition.as_deref());
        put_text(out, properties.cache_control.as_deref());
        put_text(out, properties.content_md5.as_deref());
        put_pairs(out, &self.metadata);
        put_pairs(out, &self.tags);
        put_text(out, self.tier.name.as_deref());
        put_number(out, self.tier.changed_at.map(|at| at.0));
        put_text(out, self.tier.archive_status.as_deref());
        put_text(out, self.tier.rehydrate_priority.as_deref());
        out.put_varint(self.by_type.sequence_number);
        out.put_varint(self.by_type.appended_blocks);
        out.put_u8_field(u8::from(self.copy.is_some()));
        if let Some(copy) = &self.copy {
            put_text(out, Some(&copy.id));
            put_text(out, Some(&copy.source));
            put_text(out, Some(&copy.status));
            put_text(out, copy.description.as_deref());
            out.put_varint(copy.done);
            out.put_varint(copy.total);
            put_number(out, copy.completed_at.map(|at| at.0));
        }
        put_number(out, self.deleted.map(|deleted| deleted.at.0));
        out.put_varint(self.deleted.map_or(0, |deleted| u64::from(deleted.days)));
        if has_encryption {
            put_text(out, self.encryption.key_sha256.as_deref());
            put_text(out, self.encryption.scope.as_deref());
        }
        if let Some(version) = self.version.id {
            out.put_u64_field(version);
        }
        self.content.encode(out);
    }

    /// Reads the stored form of a row with this start.
    pub(crate) fn decode(decoder: &mut Decoder<'_>, start: RowStart) -> Result<Self, DecodeError> {
        if decoder.u8("blob format")? != FORMAT {
            return Err(DecodeError("blob format"));
        }
        let blob_type = match decoder.u8("blob type")? {
            0 => BlobType::Block,
            1 => BlobType::Append,
            2 => BlobType::Page,
            _ => return Err(DecodeError("blob type")),
        };
        let flags = decoder.u8("blob flags")?;
        let mut record = BlobRecord::new(blob_type, Ticks(decoder.u64("created")?));
        record.by_type.sealed = flags & SEALED != 0;
        record.tier.inferred = flags & TIER_INFERRED != 0;
        record.version.modified_at = Ticks(decoder.u64("modified")?);
        record.version.etag = decoder.u64("etag")?;
        record.size = decoder.varint("size")?;
        record.properties = ContentProperties {
            content_type: take_text(decoder)?,
            content_encoding: take_text(decoder)?,
            content_language: take_text(decoder)?,
            content_disposition: take_text(decoder)?,
            cache_control: take_text(decoder)?,
            content_md5: take_text(decoder)?,
        };
        record.metadata = take_pairs(decoder)?;
        record.tags = take_pairs(decoder)?;
        record.tier.name = take_text(decoder)?;
        record.tier.changed_at = take_number(decoder)?.map(Ticks);
        record.tier.archive_status = take_text(decoder)?;
        record.tier.rehydrate_priority = take_text(decoder)?;
        record.by_type.sequence_number = decoder.varint("sequence number")?;
        record.by_type.appended_blocks = decoder.varint("appended blocks")?;
        if decoder.u8("copy is there")? != 0 {
            let text = |text: Option<String>| text.ok_or(DecodeError("copy"));
            record.copy = Some(CopyState {
                id: text(take_text(decoder)?)?,
                source: text(take_text(decoder)?)?,
                status: text(take_text(decoder)?)?,
                description: take_text(decoder)?,
                done: decoder.varint("copied bytes")?,
                total: decoder.varint("bytes to copy")?,
                completed_at: take_number(decoder)?.map(Ticks),
            });
        }
        let deleted_at = take_number(decoder)?.map(Ticks);
        let days = decoder.varint("retention days")? as u32;
        record.deleted = deleted_at.map(|at| Deletion { at, days });
        if flags & ENCRYPTION != 0 {
            record.encryption = Encryption { key_sha256: take_text(decoder)?, scope: take_text(decoder)? };
        }
        if flags & VERSIONED != 0 {
            record.version.id = Some(decoder.u64("version")?);
        }
        record.content = Content::decode(decoder, start)?;
        Ok(record)
    }

    /// The bytes of a blob that lies in its row.
    pub fn inline(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Inline(bytes) => Some(bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let mut record = BlobRecord::new(BlobType::Block, Ticks(5));
        record.size = 3;
        record.content = Content::Inline(Bytes::from_static(b"abc"));
        record.properties.content_type = Some("text/plain".into());
        record.properties.content_md5 = Some(String::new());
        record.metadata = vec![("a".into(), "1".into())];
        record.tags = vec![("t".into(), "v".into())];
        record.tier.changed_at = Some(Ticks(9));
        record.copy = Some(CopyState {
            id: "i".into(),
            source: "s".into(),
            status: "success".into(),
            description: None,
            done: 3,
            total: 3,
            completed_at: Some(Ticks(0)),
        });
        record.deleted = Some(Deletion { at: Ticks(77), days: 3 });
        record.by_type.sealed = true;
        record.encryption = Encryption { key_sha256: Some("hash".into()), scope: None };
        record.version.id = Some(5);
        let mut out = Vec::new();
        record.encode(&mut out);
        let start = record.content.row_start().unwrap();
        let mut decoder = Decoder::new(&out);
        assert_eq!(BlobRecord::decode(&mut decoder, start.clone()), Ok(record.clone()));
        assert!(decoder.is_empty());
        // Of its head all is known but the content.
        let head = BlobRecord::decode(&mut Decoder::new(&out[..out.len() - 3]), start.clone());
        assert_eq!(head, Ok(BlobRecord { content: Content::Unread, ..record }));
        assert!(BlobRecord::decode(&mut Decoder::new(&out[..out.len() - 1]), start).is_err());
    }

    /// A record with something in every field.
    fn full() -> BlobRecord {
        let text = |text: &str| Some(text.to_owned());
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let mut record = BlobRecord::new(BlobType::Append, Ticks(5));
        record.version.modified_at = Ticks(6);
        record.version.etag = 7;
        record.size = 300;
        record.properties = ContentProperties {
            content_type: text("t"),
            content_encoding: text("e"),
            content_language: text("l"),
            content_disposition: text("d"),
            cache_control: text("c"),
            content_md5: text("m"),
        };
        record.metadata = pair("a", "1");
        record.tags = pair("k", "v");
        record.tier.name = text("Hot");
        record.tier.inferred = false;
        record.tier.changed_at = Some(Ticks(8));
        record.tier.archive_status = text("s");
        record.tier.rehydrate_priority = text("p");
        record.by_type.sequence_number = 9;
        record.by_type.appended_blocks = 10;
        record.by_type.sealed = true;
        record.copy = Some(CopyState {
            id: "i".to_owned(),
            source: "u".to_owned(),
            status: "x".to_owned(),
            description: text("y"),
            done: 1,
            total: 2,
            completed_at: Some(Ticks(3)),
        });
        record.deleted = Some(Deletion { at: Ticks(11), days: 4 });
        record.encryption = Encryption { key_sha256: text("h"), scope: text("o") };
        record.version.id = Some(12);
        record.content = Content::Pages(13);
        record
    }

    /// Byte for byte what earlier builds wrote, however the fields are grouped in memory.
    #[test]
    fn the_stored_bytes_of_a_record_stay() {
        let number = |number: u64| number.to_le_bytes();
        let expected = [
            &[1, 1, 1 | 4 | 8][..],
            &number(5),
            &number(6),
            &number(7),
            b"\xac\x02",
            b"\x02t\x02e\x02l\x02d\x02c\x02m",
            b"\x01\x01a\x011\x01\x01k\x01v",
            b"\x04Hot\x09\x02s\x02p",
            b"\x09\x0a",
            b"\x01\x02i\x02u\x02x\x02y\x01\x02\x04",
            b"\x0c\x04",
            b"\x02h\x02o",
            &number(12),
            b"\x02",
            &number(13),
        ]
        .concat();
        let mut out = Vec::new();
        full().encode(&mut out);
        assert_eq!(out, expected);
        assert_eq!(BlobRecord::decode(&mut Decoder::new(&expected), RowStart::default()), Ok(full()));
        let new = BlobRecord::new(BlobType::Block, Ticks(1));
        let expected = [
            &[1, 0, 2][..],
            &number(1),
            &number(1),
            &number(1),
            &[0; 9],
            b"\x04Hot",
            &[0; 8],
            b"\x01",
            &number(0),
            &[0, 0],
        ]
        .concat();
        let mut out = Vec::new();
        new.encode(&mut out);
        assert_eq!(out, expected);
        assert_eq!(BlobRecord::decode(&mut Decoder::new(&expected), RowStart::default()), Ok(new));
    }

    #[test]
    fn what_is_deleted_can_come_back_for_some_days() {
        let day = 86_400 * base::clock::TICKS_PER_SECOND;
        let deletion = Deletion { at: Ticks(10 * day), days: 2 };
        assert_eq!(deletion.days_left(Ticks(10 * day)), Some(2));
        assert_eq!(deletion.days_left(Ticks(12 * day - 1)), Some(0));
        assert_eq!(deletion.days_left(Ticks(12 * day)), None);
    }
}
