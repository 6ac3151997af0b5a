//! The bytes of a backup object, and its name.
//!
//! ```text
//! <stamp, 32 hex>/meta/<generation, 32 hex>/<revision, 16 hex>                all documents at this revision
//! <stamp, 32 hex>/meta/<generation, 32 hex>/<revision, 16 hex>-<range>        what one change wrote
//!
//!  4  magic "LBAK"
//!  2  format, 1
//! 16  stamp
//! 16  generation
//!  8  count of restores before this generation
//!  8  revision
//!  1  1 all documents, 2 those of one change
//!     varint count of ranges that the change removed, 24 bytes each
//!     varint count of documents, bytes each as in `document/codec.rs`, with their range in front
//!  8  CRC-64/NVME of all before
//! ```
//!
//! Backups of all documents are made every few minutes; in between, a change that headers of parts do not
//! tell of (a split, a new range, a tail closed without a seal) has an object of its own before a part relies
//! on it. What always holds: a backup is one object, so it is complete or not there.

use crate::document::codec::{decode_document, encode_document};
use crate::document::range_document::RangeDocument;
use crate::error::StoredError;
use crate::extent::part_header::StampLife;
use crate::ids::{Generation, RangeId, StampId, UniqueName, decode_wide, parse_narrow, parse_wide};
use crate::metadata::transaction::Revision;
use base::checksum::crc64;
use base::codec::{DecodeError, Decoder, Encode};
use std::sync::Arc;

/// The newest format that is read, and the one that is written.
pub const BACKUP_FORMAT: u16 = 1;

const MAGIC: &[u8; 4] = b"LBAK";
const CHECKSUM_SIZE: usize = 8;
const SIZE_MIN: usize = 6 + CHECKSUM_SIZE;

/// How much a backup object has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BackupScope {
    /// All documents.
    Complete,
    /// The documents that one change wrote, and the ranges that it removed.
    Change {
        /// Ranges that are gone since.
        removed: Vec<RangeId>,
    },
}

/// A backup object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Backup {
    /// The stamp, and the life of its metadata store.
    pub life: StampLife,
    /// How many restores came before that life: generations are random, and this puts them in order.
    pub restores: u64,
    /// When the documents were read, or the change was committed.
    pub revision: Revision,
    /// Whether it has all documents.
    pub scope: BackupScope,
    /// The documents.
    pub documents: Vec<Arc<RangeDocument>>,
}

impl Backup {
    /// The object's name.
    pub fn path(&self) -> String {
        let complete = format!("{}{:016x}", backups_folder(self.life), self.revision.0);
        match (&self.scope, self.documents.first()) {
            (BackupScope::Change { .. }, Some(document)) => format!("{complete}-{}", document.range),
            _ => complete,
        }
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_raw(MAGIC);
        out.put_u16_field(BACKUP_FORMAT);
        out.put_raw(&self.life.stamp.0.to_le_bytes());
        out.put_raw(&self.life.generation.0.to_le_bytes());
        out.put_u64_field(self.restores);
        out.put_u64_field(self.revision.0);
        let (number, removed): (u8, &[RangeId]) = match &self.scope {
            BackupScope::Complete => (1, &[]),
            BackupScope::Change { removed } => (2, removed),
        };
        out.put_u8_field(number);
        out.put_varint(removed.len() as u64);
        for range in removed {
            range.0.encode(&mut out);
        }
        out.put_varint(self.documents.len() as u64);
        for document in &self.documents {
            document.range.0.encode(&mut out);
            out.put_bytes_field(&encode_document(document, self.life.stamp));
        }
        let checksum = crc64(&[&out]);
        out.put_u64_field(checksum);
        out
    }

    /// Reads the object of this name in `stamp`.
    pub fn decode(bytes: &[u8], stamp: StampId, path: &str) -> Result<Self, StoredError> {
        let what = format!("backup {path}");
        let Some((checked, checksum)) =
            bytes.split_last_chunk::<CHECKSUM_SIZE>().filter(|_| bytes.len() >= SIZE_MIN)
        else {
            let (found, expected) = (bytes.len() as u64, SIZE_MIN as u64);
            return Err(StoredError::Cut { what, found, expected });
        };
        if &checked[..4] != MAGIC {
            return Err(StoredError::malformed(&what, &"it does not begin as a backup does"));
        }
        if crc64(&[checked]).to_le_bytes() != *checksum {
            return Err(StoredError::WrongChecksum { what, of: "content" });
        }
        let format = u16::from_le_bytes([checked[4], checked[5]]);
        if format > BACKUP_FORMAT {
            return Err(StoredError::NewerFormat { what, found: format, newest: BACKUP_FORMAT });
        }
        let fields = decode_fields(&checked[6..]).map_err(|error| StoredError::malformed(&what, &error))?;
        let Fields { life, restores, revision, scope, documents } = fields;
        if life.stamp != stamp {
            let (found, expected) = (life.stamp.to_string(), stamp.to_string());
            return Err(StoredError::OtherStamp { what, found, expected });
        }
        let decoded = documents.into_iter().map(|(range, bytes)| decode_document(bytes, stamp, range));
        let documents = decoded.map(|document| document.map(Arc::new)).collect::<Result<_, _>>()?;
        let backup = Backup { life, restores, revision, scope, documents };
        match backup.path() == path {
            true => Ok(backup),
            false => Err(StoredError::malformed(&what, &format_args!("it is {}", backup.path()))),
        }
    }
}

/// What all names of backup objects of a life begin with.
pub fn backups_folder(life: StampLife) -> String {
    format!("{}/meta/{}/", life.stamp, life.generation)
}

/// What the name of a backup object says, so that a choice among many needs not read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackupName {
    /// The life of the metadata store that it is of.
    pub generation: Generation,
    /// When its documents were read, or its change was committed.
    pub revision: Revision,
    /// Whether it has all documents.
    pub is_complete: bool,
}

impl BackupName {
    /// Reads a name in `stamp`; none if it is not that of a backup.
    pub fn parse(name: &str, stamp: StampId) -> Option<Self> {
        let (generation, rest) = name.strip_prefix(&format!("{stamp}/meta/"))?.split_once('/')?;
        let (revision, range) = match rest.split_once('-') {
            Some((revision, range)) => (revision, Some(UniqueName::parse(range)?)),
            None => (rest, None),
        };
        let generation = Generation(parse_wide(generation)?);
        let revision = Revision(parse_narrow(revision)?);
        Some(BackupName { generation, revision, is_complete: range.is_none() })
    }
}

struct Fields<'a> {
    life: StampLife,
    restores: u64,
    revision: Revision,
    scope: BackupScope,
    documents: Vec<(RangeId, &'a [u8])>,
}

fn decode_fields(bytes: &[u8]) -> Result<Fields<'_>, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let stamp = StampId(decode_wide(&mut decoder, "stamp")?);
    let generation = Generation(decode_wide(&mut decoder, "generation")?);
    let (restores, revision) = (decoder.u64("count of restores")?, Revision(decoder.u64("revision")?));
    let number = decoder.u8("scope")?;
    let mut removed = Vec::new();
    for _ in 0..decoder.varint("count of removed ranges")? {
        removed.push(RangeId(UniqueName::decode(&mut decoder, "removed range")?));
    }
    let scope = match number {
        1 if removed.is_empty() => BackupScope::Complete,
        2 => BackupScope::Change { removed },
        _ => return Err(DecodeError("scope")),
    };
    let mut documents = Vec::new();
    for _ in 0..decoder.varint("count of documents")? {
        let range = RangeId(UniqueName::decode(&mut decoder, "range")?);
        documents.push((range, decoder.bytes("document")?));
    }
    decoder.finish("end of the backup")?;
    Ok(Fields { life: StampLife { stamp, generation }, restores, revision, scope, documents })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::range_document::{KeyLimits, OwnEntry};
    use crate::ids::{Incarnation, Mark};
    use stream::OwnerEpoch;

    const STAMP: StampId = StampId(4);

    fn backup(scope: BackupScope) -> Backup {
        let by = Incarnation(1);
        let document = |counter| {
            let own = OwnEntry::released(OwnerEpoch(1));
            let (range, mark) = (RangeId::new(by, counter), Mark::new(by, 9));
            Arc::new(RangeDocument::new(range, own, KeyLimits::default(), mark))
        };
        let life = StampLife { stamp: STAMP, generation: Generation(6) };
        let documents = vec![document(2), document(3)];
        Backup { life, restores: 1, revision: Revision(70), scope, documents }
    }

    #[test]
    fn a_backup_comes_back_under_its_name_only() {
        let removed = vec![RangeId::new(Incarnation(1), 1)];
        for scope in [BackupScope::Complete, BackupScope::Change { removed }] {
            let backup = backup(scope);
            let (bytes, path) = (backup.encode(), backup.path());
            assert_eq!(Backup::decode(&bytes, STAMP, &path), Ok(backup));
            let error = Backup::decode(&bytes, STAMP, "elsewhere").unwrap_err().to_string();
            assert!(error.starts_with("backup elsewhere is damaged: it is "), "{error}");
        }
        let complete = backup(BackupScope::Complete).path();
        let change = backup(BackupScope::Change { removed: Vec::new() }).path();
        assert!(
            change.starts_with(&complete)
                && complete.starts_with(&backups_folder(backup(BackupScope::Complete).life))
        );
    }

    #[test]
    fn a_name_says_which_backup_it_is() {
        let complete = backup(BackupScope::Complete);
        let change = backup(BackupScope::Change { removed: Vec::new() });
        for (backup, is_complete) in [(&complete, true), (&change, false)] {
            let (generation, revision) = (backup.life.generation, backup.revision);
            let name = BackupName { generation, revision, is_complete };
            assert_eq!(BackupName::parse(&backup.path(), STAMP), Some(name));
        }
        let path = complete.path();
        for other in [path.to_uppercase(), format!("{path}0"), format!("{path}-"), path.replace("meta", "x")]
        {
            assert_eq!(BackupName::parse(&other, STAMP), None, "{other}");
        }
        assert_eq!(BackupName::parse(&path, StampId(9)), None, "another stamp's");
    }

    #[test]
    fn damage_is_an_error_that_names_the_backup() {
        let (bytes, path) = (backup(BackupScope::Complete).encode(), backup(BackupScope::Complete).path());
        for len in 0..bytes.len() {
            let error = Backup::decode(&bytes[..len], STAMP, &path).unwrap_err().to_string();
            assert!(error.contains(&path), "{error}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Backup::decode(&flipped, STAMP, &path).is_err(), "bit {bit}");
        }
        let other = Backup::decode(&bytes, StampId(5), &path).unwrap_err();
        assert!(matches!(other, StoredError::OtherStamp { .. }), "{other}");
        let mut newer = bytes;
        newer[4] = 9;
        let end = newer.len() - CHECKSUM_SIZE;
        let checksum = crc64(&[&newer[..end]]);
        newer[end..].copy_from_slice(&checksum.to_le_bytes());
        let error = Backup::decode(&newer, STAMP, &path).unwrap_err();
        assert!(matches!(error, StoredError::NewerFormat { found: 9, .. }), "{error}");
    }
}
