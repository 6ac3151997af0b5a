//! Putting a blob whole: bytes that were uploaded become the blob, in place of whatever was there.

use crate::blob::replacement::Replacement;
use crate::block::block_list::store_list;
use crate::content::{Block, BlockContent, Content};
use crate::encryption::Encryption;
use crate::name::Pairs;
use crate::page::pages::PageRange;
use crate::page::put_pages::store_ranges;
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::record::{BlobRecord, BlobType, ContentProperties, CopyState};
use crate::rows::region_row::garbage_row;
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
            etag: record.version.etag,
            modified_at: record.version.modified_at,
            version: record.version.id,
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
    /// The copy that makes it.
    pub copy: Option<CopyState>,
    /// What it is encrypted with.
    pub encryption: Encryption,
    /// No more appends.
    pub sealed: bool,
}

/// Puts a blob.
pub(crate) struct PutBlob {
    pub(crate) blob_type: BlobType,
    pub(crate) size: u64,
    pub(crate) content: NewContent,
    pub(crate) new: NewBlob,
    pub(crate) replacement: Replacement,
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
        self.replacement.keeps_former()
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Written, Stop> {
        self.replacement.check(rows, now)?;
        self.replacement.check_type(rows, self.blob_type)?;
        rows.clear_staged()?;
        self.replacement.retire_current(rows, now)?;
        let mut record = BlobRecord::new(self.blob_type, now);
        record.size = self.size;
        record.properties = self.new.properties.clone();
        record.metadata = self.new.metadata.clone();
        record.tags = self.new.tags.clone();
        record.copy = self.new.copy.clone();
        record.encryption = self.new.encryption.clone();
        record.by_type.sealed = self.new.sealed;
        set_tier(&mut record, self.new.tier.as_deref(), now);
        record.content = match &self.content {
            NewContent::Inline(bytes) => Content::Inline(bytes.clone()),
            NewContent::Pieces(pieces) if pieces.is_empty() => Content::Blocks(BlockContent::default()),
            NewContent::Pieces(pieces) => {
                let block = Block { id: Bytes::new(), size: self.size, pieces: pieces.clone() };
                Content::Blocks(BlockContent { tail: vec![block], ..BlockContent::default() })
            }
            NewContent::Blocks(blocks) => {
                record.by_type.appended_blocks = blocks.len() as u64;
                Content::Blocks(store_list(rows, blocks.clone(), now))
            }
            NewContent::Pages { size, sequence_number, ranges } => {
                rows.check_no_garbage(0)?;
                record.size = *size;
                record.by_type.sequence_number = *sequence_number;
                store_ranges(rows, ranges);
                Content::Pages(0)
            }
        };
        record.version.id = self.replacement.versioned.then_some(now.0);
        let written = Written::of(&record);
        rows.head.current = Some(record);
        Ok(written)
    }
}

/// Sets the tier that a request gives.
pub(crate) fn set_tier(record: &mut BlobRecord, tier: Option<&str>, now: Ticks) {
    if let Some(tier) = tier {
        record.tier.name = Some(tier.to_owned());
        record.tier.inferred = false;
        record.tier.changed_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::delete_blob::{DeleteBlob, DeleteSnapshots, TierConditions, Undelete};
    use crate::blob::replacement::ReplaceConditions;
    use crate::blob::set_blob::LeaseBlob;
    use crate::block::put_block::PutBlock;
    use crate::condition::{Conditions, ETags};
    use crate::error::BlobError;
    use crate::lease::LeaseAction;
    use crate::page::pages::decode_region;
    use crate::rows::decision::memory_blob::MemoryBlob;
    use crate::rows::former_row::{decode_snapshot, snapshot_row};
    use crate::rows::region_row::region_row;
    use crate::rows::revision::Revision;

    pub(crate) fn put(bytes: &'static [u8]) -> PutBlob {
        PutBlob {
            blob_type: BlobType::Block,
            size: bytes.len() as u64,
            content: NewContent::Inline(Bytes::from_static(bytes)),
            new: NewBlob::default(),
            replacement: Replacement::default(),
        }
    }

    fn kept_for(retention_days: Option<u32>) -> Replacement {
        Replacement { retention_days, ..Replacement::default() }
    }

    fn on(conditions: Conditions) -> Replacement {
        let demands = ReplaceConditions { conditions, ..ReplaceConditions::default() };
        Replacement { demands, ..Replacement::default() }
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
            replacement: Replacement::default(),
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
        assert_eq!((current.inline().unwrap().as_ref(), current.version.etag), (&b"two"[..], 12));
        let absent = Conditions { if_none_match: Some(ETags::Any), ..Conditions::default() };
        let exists = PutBlob { replacement: on(absent), ..put(b"three") };
        assert_eq!(blob.run(exists, 13), Err(BlobError::BlobAlreadyExists));
        let id = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".to_owned();
        let acquire = LeaseAction::Acquire { seconds: None, id: id.clone() };
        blob.run(LeaseBlob { action: acquire, conditions: Conditions::default() }, 13).unwrap();
        let spares = |lease_id: Option<String>| {
            let if_none_match = Some(ETags::Any);
            let conditions = Conditions { if_none_match, lease_id, ..Conditions::default() };
            PutBlob { replacement: on(conditions), ..put(b"leased") }
        };
        let missing = BlobError::Lease(crate::error::LeaseError::IdMissing);
        assert_eq!(blob.run(spares(None), 13), Err(missing), "the lease is asked for first");
        blob.run(spares(Some(id.clone())), 13).unwrap();
        let release = LeaseAction::Release { id };
        blob.run(LeaseBlob { action: release, conditions: Conditions::default() }, 13).unwrap();
        let kept = PutBlob { replacement: kept_for(Some(1)), ..put(b"four") };
        blob.run(kept, 14).unwrap();
        assert_eq!((blob.head().deleted_snapshots, blob.count("1s")), (1, 1));
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
            blob.run(PutBlob { replacement: kept_for(retention_days), ..put(b"new") }, 3).unwrap();
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
        blob.run(PutBlob { replacement: kept_for(Some(30)), ..put(b"new") }, 2 + day).unwrap();
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
            let (new, replacement) = (NewBlob::default(), kept_for(retention_days));
            PutBlob { blob_type: BlobType::Page, size: 1024, content, new, replacement }
        };
        for (deleted_first, retention_days) in [(false, Some(7)), (true, Some(7)), (true, None)] {
            for next in
                [pages(2, retention_days), PutBlob { replacement: kept_for(retention_days), ..put(b"x") }]
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
