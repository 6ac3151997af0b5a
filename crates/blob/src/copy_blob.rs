//! Copies inside the server. The bytes are read and written again: source and destination may lie in ranges
//! that share nothing. What always holds: the copy is of one version of the source, and appears whole or not
//! at all.

use crate::blob::put_blob::{NewBlob, NewContent, Written};
use crate::blob::read_blob::{BlobReader, FoundRecord, find_head};
use crate::blob::replacement::ReplaceConditions;
use crate::blob::set_blob::check_tier;
use crate::blob_service::{BlobAt, BlobService};
use crate::condition::{Conditions, ETags, etag_text};
use crate::content::Block;
use crate::content::upload::{Upload, Uploaded};
use crate::encryption::Encryption;
use crate::error::BlobError;
use crate::page::pages::{PageRange, joined};
use crate::rows::record::{BlobType, CopyState};
use crate::rows::revision::Revision;
use base::checksum::Crc64;
use bytes::Bytes;
use partition::{DataPin, PIECE_SIZE_BYTES_MAX};

/// How the source must be.
#[derive(Clone, Debug, Default)]
pub struct CopySource {
    /// Which of the blobs of its name.
    pub revision: Revision,
    /// Conditions on it.
    pub conditions: Conditions,
    /// Whether it may be archived: its copy is not.
    pub may_be_archived: bool,
}

impl CopySource {
    /// What must hold of the source when its bytes are read: if there were conditions, that it is what they
    /// were checked on.
    fn still(&self, found: &FoundRecord, encryption: Encryption) -> Conditions {
        let none = Conditions { encryption: self.conditions.encryption.clone(), ..Conditions::default() };
        let is_bound = self.conditions != none;
        let if_match = is_bound.then(|| ETags::List(vec![etag_text(found.record.version.etag)]));
        Conditions { if_match, encryption, ..Conditions::default() }
    }
}

/// The source was replaced after its conditions had been checked.
fn replaced(error: BlobError) -> BlobError {
    match error {
        BlobError::ConditionNotMet => BlobError::SourceConditionNotMet,
        other => other,
    }
}

/// A copy that was made.
pub struct Copied {
    /// What the copy tells of itself.
    pub state: CopyState,
    /// What any write tells.
    pub written: Written,
    /// The CRC-64 of its bytes, which were at hand unless it is of pages.
    pub crc64: Option<u64>,
}

/// The bytes of a copy in their new place, not yet named by a row.
struct CopiedBytes {
    content: NewContent,
    pins: Vec<DataPin>,
    crc64: Option<u64>,
}

/// Copies the next bytes of a source.
struct Portions {
    reader: BlobReader,
    rest: Bytes,
    /// Of all bytes that were copied, if they go to several places, none of which knows them all.
    crc64: Option<Crc64>,
}

impl Portions {
    async fn copy(&mut self, upload: &mut Upload, mut len: u64) -> Result<(), BlobError> {
        while len > 0 {
            if self.rest.is_empty() {
                self.rest = self.reader.next().await?.ok_or(base::codec::DecodeError("source"))?;
            }
            let taken = self.rest.split_to(usize::try_from(len).unwrap_or(usize::MAX).min(self.rest.len()));
            len -= taken.len() as u64;
            if let Some(crc64) = &mut self.crc64 {
                crc64.update(&taken);
            }
            upload.write(taken).await?;
        }
        Ok(())
    }
}

impl BlobService {
    /// The source of a copy, if its conditions hold.
    pub async fn find_source(&self, source: &BlobAt, wanted: &CopySource) -> Result<FoundRecord, BlobError> {
        let found = self.find(source, wanted.revision, &Conditions::default()).await?;
        let present = found.record.present();
        let conditions = Conditions { lease_id: None, ..wanted.conditions.clone() };
        let lasting = Conditions { if_none_match: None, if_modified_since: None, ..conditions.clone() };
        let refused = |_| match wanted.conditions.if_tags {
            Some(_) => BlobError::ConditionNotMet,
            None if lasting.check_write(Some(present)).is_ok() => BlobError::SourceNotModified,
            None => BlobError::SourceConditionNotMet,
        };
        conditions.check_write(Some(present)).map_err(refused)?;
        found.lease.check_read(wanted.conditions.lease(), found.now)?;
        found.record.check_online(wanted.may_be_archived)?;
        Ok(found)
    }

    /// Reads a part of a source into an upload for another blob: bytes `range` of it, or all.
    pub async fn upload_from(
        &self,
        at: &BlobAt,
        source: &BlobAt,
        wanted: &CopySource,
        range: Option<(u64, Option<u64>)>,
        may_be_inline: bool,
        size_max: u64,
    ) -> Result<(FoundRecord, Uploaded), BlobError> {
        let checked = self.find_source(source, wanted).await?;
        let still = wanted.still(&checked, wanted.conditions.encryption.clone());
        let opened = self.read(source, wanted.revision, &still, range).await;
        let (found, (start, end), mut reader) = opened.map_err(replaced)?;
        if end - start > size_max {
            return Err(BlobError::BodyTooLarge);
        }
        let mut upload = self.upload(at, may_be_inline, true);
        while let Some(bytes) = reader.next().await? {
            upload.write(bytes).await?;
        }
        let uploaded = upload.finish().await?;
        self.check_unchanged(source, wanted.revision, &found).await?;
        Ok((found, uploaded))
    }

    /// Pages can be written while they are read: then what was read was never the blob's content.
    async fn check_unchanged(
        &self,
        source: &BlobAt,
        revision: Revision,
        found: &FoundRecord,
    ) -> Result<(), BlobError> {
        if found.record.blob_type != BlobType::Page {
            return Ok(());
        }
        let now = find_head(&self.partitions, &source.address, revision).await?;
        if now.record.version.etag == found.record.version.etag {
            Ok(())
        } else {
            Err(BlobError::SourceConditionNotMet)
        }
    }

    /// Copies a blob of any type. `prepare` turns the source into what the copy gets besides its bytes; the
    /// `demands` are on the blob that the copy replaces.
    /// [`BlobError::ConditionNotMet`] is about the destination: the source's conditions are
    /// [`Self::find_source`]'s, and one that no longer meets them was replaced.
    pub async fn copy(
        &self,
        at: &BlobAt,
        source: &BlobAt,
        wanted: &CopySource,
        copy: CopyState,
        demands: ReplaceConditions,
        prepare: impl FnOnce(&FoundRecord) -> NewBlob,
    ) -> Result<Copied, BlobError> {
        let checked = self.find_source(source, wanted).await.map_err(replaced)?;
        let still = wanted.still(&checked, Encryption::default());
        let opened = self.open(source, wanted.revision, &still, None, wanted.may_be_archived).await;
        let (found, (_, size), reader) = opened.map_err(replaced)?;
        let blob_type = found.record.blob_type;
        let mut new = prepare(&found);
        check_tier(blob_type, new.tier.as_deref())?;
        let mut portions = Portions { reader, rest: Bytes::new(), crc64: None };
        let CopiedBytes { content, pins, crc64 } = match blob_type {
            BlobType::Page => self.copy_pages(at, source, &found).await?,
            _ => self.copy_blocks(at, source, &found, &mut portions).await?,
        };
        self.check_unchanged(source, wanted.revision, &found).await?;
        let completed_at = Some(self.now());
        let copy = CopyState { status: "success".to_owned(), done: size, total: size, completed_at, ..copy };
        new.copy = Some(copy.clone());
        let written = self.put(at, blob_type, size, content, new, demands).await;
        drop(pins);
        Ok(Copied { state: copy, written: written?, crc64 })
    }

    async fn copy_blocks(
        &self,
        at: &BlobAt,
        source: &BlobAt,
        found: &FoundRecord,
        portions: &mut Portions,
    ) -> Result<CopiedBytes, BlobError> {
        let record = &found.record;
        let blocks = self.blocks_of(source, record).await?;
        let is_list = record.blob_type == BlobType::Append || blocks.iter().any(|block| !block.id.is_empty());
        if !is_list {
            let mut upload = self.upload(at, true, false);
            portions.copy(&mut upload, record.size).await?;
            let Uploaded { inline, pieces, pins, crc64, .. } = upload.finish().await?;
            let content = inline.map_or(NewContent::Pieces(pieces), NewContent::Inline);
            return Ok(CopiedBytes { content, pins, crc64: Some(crc64) });
        }
        portions.crc64 = Some(Crc64::default());
        let (mut copies, mut all_pins) = (Vec::with_capacity(blocks.len()), Vec::new());
        for Block { id, size, .. } in blocks {
            let mut upload = self.upload(at, false, false);
            portions.copy(&mut upload, size).await?;
            let Uploaded { pieces, pins, .. } = upload.finish().await?;
            copies.push(Block { id, size, pieces });
            all_pins.extend(pins);
        }
        let crc64 = portions.crc64.as_ref().map(Crc64::value);
        Ok(CopiedBytes { content: NewContent::Blocks(copies), pins: all_pins, crc64 })
    }

    async fn copy_pages(
        &self,
        at: &BlobAt,
        source: &BlobAt,
        found: &FoundRecord,
    ) -> Result<CopiedBytes, BlobError> {
        let record = &found.record;
        let (mut ranges, mut all_pins) = (Vec::new(), Vec::new());
        let old = self.ranges_of(source, record).await?;
        for (start, end) in joined(old.iter().map(|range| (range.start, range.start + range.len))) {
            let wanted = Some((start, Some(end)));
            let (_, _, reader) = self.read(source, found.revision, &Conditions::default(), wanted).await?;
            let mut portions = Portions { reader, rest: Bytes::new(), crc64: None };
            for from in (start..end).step_by(PIECE_SIZE_BYTES_MAX) {
                let len = (end - from).min(PIECE_SIZE_BYTES_MAX as u64);
                let mut upload = self.upload(at, false, false);
                portions.copy(&mut upload, len).await?;
                let Uploaded { pieces, pins, .. } = upload.finish().await?;
                let piece = *pieces.first().ok_or(base::codec::DecodeError("copied pages"))?;
                ranges.push(PageRange { start: from, len, piece, piece_offset: 0 });
                all_pins.extend(pins);
            }
        }
        let (size, sequence_number) = (record.size, record.by_type.sequence_number);
        let content = NewContent::Pages { size, sequence_number, ranges };
        Ok(CopiedBytes { content, pins: all_pins, crc64: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Lease;
    use crate::rows::record::BlobRecord;
    use crate::rows::revision::Revision;
    use base::Ticks;

    /// A source that was replaced after its conditions had been checked was copied as it was then.
    #[test]
    fn what_was_checked_is_what_is_read() {
        let record = BlobRecord::new(BlobType::Block, Ticks(7));
        let now = Ticks(8);
        let found = FoundRecord { record, lease: Lease::None, revision: Revision::Current, now };
        let still = |conditions| {
            let wanted = CopySource { conditions, ..CopySource::default() };
            wanted.still(&found, Encryption::default()).if_match
        };
        assert_eq!(still(Conditions::default()), None, "any version will do");
        let since = Conditions { if_modified_since: Some(Ticks(1)), ..Conditions::default() };
        assert_eq!(still(since), Some(ETags::List(vec![etag_text(found.record.version.etag)])));
    }
}
