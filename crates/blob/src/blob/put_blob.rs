//! Putting a blob whole: bytes that were uploaded become the blob, in place of whatever was there.

use crate::block::block_list::store_list;
use crate::condition::{Conditions, ETags};
use crate::content::{Block, BlockContent, Content};
use crate::encryption::Encryption;
use crate::error::BlobError;
use crate::name::Pairs;
use crate::page::pages::PageRange;
use crate::page::put_pages::{copy_regions, store_ranges};
use crate::rows::blob_change::BlobChange;
use crate::rows::blob_rows::BlobRows;
use crate::rows::former_row::{VERSION_PREFIX, decode_snapshot, encode_snapshot, snapshot_row};
use crate::rows::record::{BlobRecord, BlobType, ContentProperties, CopyState, Deletion};
use crate::rows::region_row::garbage_row;
use crate::rows::stop::Stop;
use crate::versions::keep_version;
use base::Ticks;
use bytes::Bytes;
use partition::Piece;

/// Bytes that are durable, or small enough for the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NewContent {
    /// In the row.
    Inline(Bytes),
    /// One unnamed block.
    Pieces(Vec<Piece>),
    /// Blocks, named or not: a copy.
    Blocks(Vec<Block>),
    /// A page blob of this size with these ranges.
    Pages { size: u64, sequence_number: u64, ranges: Vec<PageRange> },
}

/// What a written blob tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The new ETag.
    pub etag: u64,
    /// When.
    pub modified_at: Ticks,
    /// The version's id.
    pub version: Option<u64>,
    /// What the blob is encrypted with.
    pub encryption: Encryption,
}

impl Written {
    pub(crate) fn of(record: &BlobRecord) -> Self {
        Written {
            etag: record.etag,
            modified_at: record.modified_at,
            version: record.version,
            encryption: record.encryption.clone(),
        }
    }
}

/// What a blob gets besides its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewBlob {
    /// What HTTP says of it.
    pub properties: ContentProperties,
    /// Metadata.
    pub metadata: Pairs,
    /// Tags.
    pub tags: Pairs,
    /// The access tier, if it is set.
    pub tier: Option<String>,
    /// Refuse if it would replace a blob, because the credentials only allow to create.
    pub create_only: bool,
    /// Conditions.
    pub conditions: Conditions,
    /// The copy that makes it.
    pub copy: Option<CopyState>,
    /// Days that what is replaced can come back.
    pub retention_days: Option<u32>,
    /// What it is encrypted with.
    pub encryption: Encryption,
    /// No more appends.
    pub sealed: bool,
    /// Refuse if it would replace a blob of another type.
    pub keeps_type: bool,
    /// What is replaced stays as a version.
    pub versioned: bool,
}

impl NewBlob {
    /// Whether what it replaces is likely to stay in some form.
    pub(crate) fn keeps_former(&self) -> bool {
        self.versioned || self.retention_days.is_some()
    }
}

/// Puts a blob.
pub(crate) struct PutBlob {
    pub(crate) blob_type: BlobType,
    pub(crate) size: u64,
    pub(crate) content: NewContent,
    pub(crate) new: NewBlob,
}

/// Checks that the base blob may be replaced.
pub(crate) fn check_replace(rows: &mut BlobRows, new: &NewBlob, now: Ticks) -> Result<(), Stop> {
    let live = rows.head.live();
    let lease = if live.is_some() && rows.head.lease.state(now).is_locked() {
        // The service asks for the lease first, and whoever holds it replaces what `If-None-Match: *` would
        // spare.
        let lease = rows.head.lease.check_write(new.conditions.lease(), now)?;
        let mut conditions = new.conditions.clone();
        conditions.if_none_match = conditions.if_none_match.filter(|tags| *tags != ETags::Any);
        conditions.check_create(live.map(BlobRecord::present))?;
        lease
    } else {
        new.conditions.check_create(live.map(BlobRecord::present))?;
        rows.head.lease.check_write(new.conditions.lease(), now)?
    };
    if live.is_some() && new.create_only {
        return Err(BlobError::UnauthorizedBlobOverwrite.into());
    }
    if rows.head.live().is_some_and(|live| live.is_archived()) {
        return Err(BlobError::BlobArchived.into());
    }
    rows.head.lease = lease;
    Ok(())
}

/// Refuses a type that is not that of the former versions: all versions of a blob are of one (source: the
/// reference's page on versioning). Whoever wants another deletes them first.
pub(crate) fn check_type_of_versions(
    rows: &BlobRows,
    blob_type: BlobType,
    new: &NewBlob,
) -> Result<(), Stop> {
    let live = rows.head.live().map(|live| live.blob_type);
    let former = match live {
        // It becomes a version, or is like those that there are.
        Some(live) => (new.versioned || rows.head.versions > 0).then_some(live),
        // They are alike: the last one that is seen stands for all.
        None if rows.head.versions > 0 => match rows.first_names(VERSION_PREFIX)?.last() {
            Some(name) => rows.row(name)?.map(|row| decode_snapshot(row)).transpose()?,
            None => None,
        }
        .map(|version| version.blob_type),
        None => None,
    };
    match former {
        Some(former) if former != blob_type => Err(BlobError::InvalidBlobType.into()),
        _ => Ok(()),
    }
}

/// Until when a base blob that is replaced at `now` can come back. What was deleted before keeps the time
/// that it was deleted with, whatever the setting is now; `None`: not at all.
fn choose_deletion(deleted: Option<Deletion>, retention_days: Option<u32>, now: Ticks) -> Option<Deletion> {
    match deleted {
        Some(deleted) => deleted.days_left(now).map(|_| deleted),
        None => retention_days.map(|days| Deletion { at: now, days }),
    }
}

/// Takes the base blob away; it stays as a version where they are kept, else, while it can come back, as a
/// deleted snapshot.
pub(crate) fn retire_current(rows: &mut BlobRows, new: &NewBlob, now: Ticks) -> Result<(), Stop> {
    if new.versioned && rows.head.live().is_some() {
        keep_version(rows)?;
        return match rows.head.current.take() {
            Some(old) => rows.release(&old.content),
            None => Ok(()),
        };
    }
    let Some(mut old) = rows.head.current.take() else { return Ok(()) };
    let Some(deletion) = choose_deletion(old.deleted, new.retention_days, now) else {
        return rows.release(&old.content);
    };
    old.deleted = Some(deletion);
    if let Content::Pages(owner) = old.content {
        // Where they are, the pages of the next blob will be.
        old.content = copy_regions(rows, owner, now.0)?;
        rows.release(&Content::Pages(owner))?;
    }
    rows.put(snapshot_row(now.0), encode_snapshot(&old)?);
    rows.head.deleted_snapshots += 1;
    Ok(())
}

impl BlobChange for PutBlob {
    type Reply = Written;

    fn more_rows(&self) -> Vec<String> {
        match self.content {
            NewContent::Pages { .. } => vec![garbage_row(0)],
            _ => Vec::new(),
        }
    }

    fn keeps_content(&self) -> bool {
        self.new.keeps_former()
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Written, Stop> {
        check_replace(rows, &self.new, now)?;
        let is_of_type = |live: &BlobRecord| live.blob_type == self.blob_type;
        if self.new.keeps_type && !rows.head.live().is_none_or(is_of_type) {
            return Err(BlobError::InvalidBlobType.into());
        }
        check_type_of_versions(rows, self.blob_type, &self.new)?;
        rows.clear_staged()?;
        retire_current(rows, &self.new, now)?;
        let mut record = BlobRecord::new(self.blob_type, now);
        record.size = self.size;
        record.properties = self.new.properties.clone();
        record.metadata = self.new.metadata.clone();
        record.tags = self.new.tags.clone();
        record.copy = self.new.copy.clone();
        record.encryption = self.new.encryption.clone();
        record.sealed = self.new.sealed;
        set_tier(&mut record, self.new.tier.as_deref(), now);
        record.content = match &self.content {
            NewContent::Inline(bytes) => Content::Inline(bytes.clone()),
            NewContent::Pieces(pieces) if pieces.is_empty() => Content::Blocks(BlockContent::default()),
            NewContent::Pieces(pieces) => {
                let block = Block { id: Bytes::new(), size: self.size, pieces: pieces.clone() };
                Content::Blocks(BlockContent { tail: vec![block], ..BlockContent::default() })
            }
            NewContent::Blocks(blocks) => {
                record.appended_blocks = blocks.len() as u64;
                Content::Blocks(store_list(rows, blocks.clone(), now))
            }
            NewContent::Pages { size, sequence_number, ranges } => {
                rows.check_no_garbage(0)?;
                record.size = *size;
                record.sequence_number = *sequence_number;
                store_ranges(rows, ranges);
                Content::Pages(0)
            }
        };
        record.version = self.new.versioned.then_some(now.0);
        let written = Written::of(&record);
        rows.head.current = Some(record);
        Ok(written)
    }
}

/// Sets the tier that a request gives.
pub(crate) fn set_tier(record: &mut BlobRecord, tier: Option<&str>, now: Ticks) {
    if let Some(tier) = tier {
        record.tier = Some(tier.to_owned());
        record.tier_inferred = false;
        record.tier_changed_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::delete_blob::{DeleteBlob, DeleteSnapshots, TierConditions, Undelete};
    use crate::blob::set_blob::LeaseBlob;
    use crate::block::put_block::PutBlock;
    use crate::lease::LeaseAction;
    use crate::page::pages::decode_region;
    use crate::rows::former_row::decode_snapshot;
    use crate::rows::memory_blob::MemoryBlob;
    use crate::rows::region_row::region_row;
    use crate::rows::revision::Revision;

    pub(crate) fn put(bytes: &'static [u8]) -> PutBlob {
        PutBlob {
            blob_type: BlobType::Block,
            size: bytes.len() as u64,
            content: NewContent::Inline(Bytes::from_static(bytes)),
            new: NewBlob::default(),
        }
    }

    /// Clients have ids of different lengths: one that staged blocks over another's blob was refused.
    #[test]
    fn blocks_are_staged_over_a_list_with_other_ids() {
        let mut blob = MemoryBlob::default();
        let staged = |id: &'static [u8]| PutBlock {
            id: Bytes::from_static(id),
            size: 1,
            pieces: vec![Piece::for_tests(1, 0, 1)],
            lease: None,
            encryption: Default::default(),
            create_only: false,
        };
        let commit = |id: &'static [u8]| crate::block::put_block_list::PutBlockList {
            list: vec![(crate::block::put_block_list::BlockSource::Latest, Bytes::from_static(id))],
            new: NewBlob::default(),
        };
        blob.run(staged(b"one"), 1).unwrap();
        assert_eq!(
            blob.run(staged(b"three"), 2),
            Err(BlobError::InvalidBlobOrBlock),
            "those staged go together"
        );
        blob.run(commit(b"one"), 3).unwrap();
        blob.run(staged(b"three"), 4).unwrap();
        blob.run(commit(b"three"), 5).unwrap();
        assert_eq!(blob.head().live().map(|live| live.size), Some(1));
    }

    #[test]
    fn a_put_replaces_everything_but_lease_and_snapshots() {
        let mut blob = MemoryBlob::default();
        blob.run(put(b"one"), 10).unwrap();
        let staged = PutBlock {
            id: Bytes::from_static(b"a"),
            size: 5,
            pieces: vec![Piece::for_tests(1, 0, 5)],
            lease: None,
            encryption: Encryption::default(),
            create_only: false,
        };
        blob.run(staged, 11).unwrap();
        assert_eq!((blob.head().staged, blob.count("5u")), (1, 1));
        blob.run(put(b"two"), 12).unwrap();
        assert_eq!((blob.head().staged, blob.count("5u")), (0, 0));
        let current = blob.head().current.unwrap();
        assert_eq!((current.inline().unwrap().as_ref(), current.etag), (&b"two"[..], 12));
        let exists = PutBlob {
            new: NewBlob {
                conditions: Conditions { if_none_match: Some(ETags::Any), ..Conditions::default() },
                ..NewBlob::default()
            },
            ..put(b"three")
        };
        assert_eq!(blob.run(exists, 13), Err(BlobError::BlobAlreadyExists));
        let id = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".to_owned();
        let acquire = LeaseAction::Acquire { seconds: None, id: id.clone() };
        blob.run(LeaseBlob { action: acquire, conditions: Conditions::default() }, 13).unwrap();
        let spares = |lease_id: Option<String>| {
            let if_none_match = Some(ETags::Any);
            let conditions = Conditions { if_none_match, lease_id, ..Conditions::default() };
            PutBlob { new: NewBlob { conditions, ..NewBlob::default() }, ..put(b"leased") }
        };
        let missing = BlobError::Lease(crate::error::LeaseError::IdMissing);
        assert_eq!(blob.run(spares(None), 13), Err(missing), "the lease is asked for first");
        blob.run(spares(Some(id.clone())), 13).unwrap();
        let release = LeaseAction::Release { id };
        blob.run(LeaseBlob { action: release, conditions: Conditions::default() }, 13).unwrap();
        let kept = PutBlob { new: NewBlob { retention_days: Some(1), ..NewBlob::default() }, ..put(b"four") };
        blob.run(kept, 14).unwrap();
        assert_eq!((blob.head().deleted_snapshots, blob.count("1s")), (1, 1));
    }

    #[test]
    fn what_was_deleted_keeps_its_time_and_what_is_replaced_gets_the_settings() {
        let day = 86_400 * base::clock::TICKS_PER_SECOND;
        let now = Ticks(10 * day);
        let deletion = |at: u64, days| Some(Deletion { at: Ticks(at), days });
        for (deleted, setting, expected) in [
            (None, None, None),
            (None, Some(7), deletion(now.0, 7)),
            (deletion(8 * day, 7), None, deletion(8 * day, 7)),
            (deletion(8 * day, 7), Some(30), deletion(8 * day, 7)),
            (deletion(8 * day, 7), Some(1), deletion(8 * day, 7)),
            (deletion(3 * day, 7), None, None),
            (deletion(3 * day, 7), Some(30), None),
        ] {
            assert_eq!(choose_deletion(deleted, setting, now), expected, "{deleted:?} {setting:?}");
        }
    }

    fn delete(retention_days: Option<u32>) -> DeleteBlob {
        let (conditions, tier) = (Conditions::default(), TierConditions::default());
        let (revision, snapshots) = (Revision::Current, DeleteSnapshots::Refuse);
        DeleteBlob { revision, snapshots, conditions, tier, retention_days, versioned: false }
    }

    /// A blob that had been deleted softly was lost at once when another was put in its place after soft
    /// delete had been switched off.
    #[test]
    fn what_was_deleted_softly_comes_back_from_under_another_blob_whatever_the_setting_is_now() {
        for retention_days in [None, Some(1), Some(30)] {
            let mut blob = MemoryBlob::default();
            blob.run(put(b"old"), 1).unwrap();
            blob.run(delete(Some(7)), 2).unwrap();
            let new = NewBlob { retention_days, ..NewBlob::default() };
            blob.run(PutBlob { new, ..put(b"new") }, 3).unwrap();
            blob.run(Undelete, 4).unwrap();
            assert_eq!((blob.head().snapshots, blob.count("1s")), (1, 1), "{retention_days:?}");
            let snapshot = decode_snapshot(&blob.rows[&snapshot_row(3)]).unwrap();
            assert_eq!(snapshot.inline().unwrap().as_ref(), b"old");
            let current = blob.head().live().and_then(BlobRecord::inline).cloned();
            assert_eq!(current.unwrap().as_ref(), b"new");
        }
    }

    #[test]
    fn what_is_over_goes_when_another_blob_is_put_in_its_place() {
        let day = 86_400 * base::clock::TICKS_PER_SECOND;
        let mut blob = MemoryBlob::default();
        blob.run(put(b"old"), 1).unwrap();
        blob.run(delete(Some(1)), 2).unwrap();
        let new = NewBlob { retention_days: Some(30), ..NewBlob::default() };
        blob.run(PutBlob { new, ..put(b"new") }, 2 + day).unwrap();
        assert_eq!((blob.head().deleted_snapshots, blob.rows.len()), (0, 1));
    }

    /// A page blob that was replaced was lost, soft delete or not.
    #[test]
    fn a_page_blob_that_is_replaced_comes_back_with_its_pages() {
        let page = |number: u64| PageRange {
            start: 0,
            len: 512,
            piece: Piece::for_tests(number, 0, 512),
            piece_offset: 0,
        };
        let pages = |number: u64, retention_days: Option<u32>| {
            let content = NewContent::Pages { size: 1024, sequence_number: 0, ranges: vec![page(number)] };
            let new = NewBlob { retention_days, ..NewBlob::default() };
            PutBlob { blob_type: BlobType::Page, size: 1024, content, new }
        };
        for (deleted_first, retention_days) in [(false, Some(7)), (true, Some(7)), (true, None)] {
            for next in [pages(2, retention_days), PutBlob { new: pages(2, retention_days).new, ..put(b"x") }]
            {
                let mut blob = MemoryBlob::default();
                blob.run(pages(1, None), 1).unwrap();
                if deleted_first {
                    blob.run(delete(Some(7)), 2).unwrap();
                }
                let is_page = next.blob_type == BlobType::Page;
                blob.run(next, 3).unwrap();
                assert_eq!((blob.head().deleted_snapshots, blob.count("0g")), (1, 0));
                blob.run(Undelete, 4).unwrap();
                let snapshot = decode_snapshot(&blob.rows[&snapshot_row(3)]).unwrap();
                assert_eq!((snapshot.content, snapshot.deleted), (Content::Pages(3), None));
                let region =
                    |owner| blob.rows.get(&region_row(owner, 0)).map(|row| decode_region(0, row).unwrap());
                assert_eq!(region(3), Some(vec![page(1)]));
                assert_eq!(region(0), is_page.then(|| vec![page(2)]), "those of the new one");
                let only_snapshots = DeleteBlob { snapshots: DeleteSnapshots::Include, ..delete(None) };
                blob.run(only_snapshots, 5).unwrap();
                assert_eq!(blob.rows.len(), 0, "nothing is left");
            }
        }
    }
}
