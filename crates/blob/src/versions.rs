//! Former versions: what a write replaces stays under its id, where an account keeps versions.
//!
//! An id is the time of the write that made the version, and the version of its row; so ids never repeat
//! under one name.

use crate::content::Content;
use crate::page::put_pages::copy_regions;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::former_row::{encode_snapshot, version_row};
use crate::rows::record::BlobRecord;
use base::Ticks;

/// What the owner of a version's pages has besides its id: a snapshot of the same time has pages of its own.
const VERSION_OWNER_BIT: u64 = 1 << 63;

/// Stores the base blob under its id; it stays the base blob, too, until the caller changes that.
pub(crate) fn keep_version(rows: &mut BlobRows) -> Result<(), Stop> {
    let Some(live) = rows.head.live() else { return Ok(()) };
    let mut former: BlobRecord = live.clone();
    // Whatever was written before versions were kept gets the time of its last change, which nothing else
    // has.
    let id = former.version.id.unwrap_or(former.version.etag);
    former.version.id = Some(id);
    if let Content::Pages(owner) = former.content {
        former.content = copy_regions(rows, owner, id | VERSION_OWNER_BIT)?;
    }
    rows.put(version_row(id), encode_snapshot(&former)?);
    rows.head.versions += 1;
    Ok(())
}

/// A change that is not a new blob makes a new version of the base blob.
pub(crate) fn renew_version(rows: &mut BlobRows, now: Ticks) -> Result<(), Stop> {
    keep_version(rows)?;
    if let Some(current) = &mut rows.head.current {
        current.version.id = Some(now.0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::VERSION_OWNER_BIT;
    use crate::blob::delete_blob::{DeleteBlob, DeleteSnapshots, TakeSnapshot, TierConditions, Undelete};
    use crate::blob::put_blob::{NewBlob, NewContent, PutBlob};
    use crate::blob::replacement::Replacement;
    use crate::blob::set_blob::SetMetadata;
    use crate::condition::Conditions;
    use crate::error::BlobError;
    use crate::page::put_pages::PutPages;
    use crate::rows::decision::memory_blob::MemoryBlob;
    use crate::rows::record::BlobType;
    use crate::rows::region_row::regions_prefix;
    use crate::rows::revision::Revision;
    use bytes::Bytes;

    fn rules(versioned: bool) -> Replacement {
        Replacement { versioned, ..Replacement::default() }
    }

    fn put(bytes: &'static [u8]) -> PutBlob {
        PutBlob {
            blob_type: BlobType::Block,
            size: bytes.len() as u64,
            content: NewContent::Inline(Bytes::from_static(bytes)),
            new: NewBlob::default(),
            replacement: rules(true),
        }
    }

    fn delete(revision: Revision, retention_days: Option<u32>) -> DeleteBlob {
        DeleteBlob {
            revision,
            snapshots: DeleteSnapshots::Refuse,
            conditions: Conditions::default(),
            tier: TierConditions::default(),
            retention_days,
            versioned: true,
        }
    }

    #[test]
    fn writes_leave_versions_behind() {
        let mut blob = MemoryBlob::default();
        assert_eq!(blob.run(put(b"one"), 1).unwrap().version, Some(1));
        blob.run(put(b"two"), 2).unwrap();
        let conditions = Conditions::default();
        let metadata = SetMetadata { metadata: vec![("a".into(), "1".into())], conditions, versioned: true };
        assert_eq!(blob.run(metadata, 3).unwrap().version, Some(3));
        let snapshot = TakeSnapshot { metadata: None, conditions: Conditions::default(), versioned: true };
        assert_eq!(blob.run(snapshot, 4).unwrap().1.version, Some(4));
        assert_eq!((blob.head().versions, blob.count("1v"), blob.count("1s")), (3, 3, 1));
        let current = Revision::Version(4);
        assert_eq!(blob.run(delete(current, None), 5), Err(BlobError::VersionIsCurrent));
        assert_eq!(blob.run(delete(Revision::Version(2), None), 6), Ok(()));
        assert_eq!(blob.run(delete(Revision::Version(2), None), 7), Err(BlobError::BlobNotFound));
        assert_eq!((blob.head().versions, blob.count("1v")), (2, 2));
    }

    #[test]
    fn a_deletion_only_makes_the_last_version_a_former_one() {
        let mut blob = MemoryBlob::default();
        blob.run(put(b"one"), 1).unwrap();
        blob.run(delete(Revision::Current, Some(7)), 2).unwrap();
        assert_eq!((blob.head().current, blob.head().versions), (None, 1));
        blob.run(delete(Revision::Version(1), Some(7)), 3).unwrap();
        assert_eq!(blob.run(delete(Revision::Version(1), None), 4), Err(BlobError::BlobNotFound));
        blob.run(Undelete, 5).unwrap();
        blob.run(delete(Revision::Version(1), None), 6).unwrap();
        assert_eq!(blob.rows.len(), 0, "nothing is left");
    }

    #[test]
    fn what_was_there_before_is_a_version_once_it_is_replaced() {
        let mut blob = MemoryBlob::default();
        let before = PutBlob { replacement: rules(false), ..put(b"old") };
        assert_eq!(blob.run(before, 1).unwrap().version, None);
        blob.run(put(b"new"), 2).unwrap();
        assert!(blob.rows.contains_key(&crate::rows::former_row::version_row(1)));
        let plain = PutBlob { replacement: rules(false), ..put(b"plain") };
        blob.run(plain, 3).unwrap();
        assert_eq!(blob.head().versions, 1, "an account that keeps none replaces");
    }

    /// They once shared rows of pages, so that the one's overwritten or deleted the other's.
    #[test]
    fn a_snapshot_and_the_version_of_its_time_have_pages_of_their_own() {
        let mut blob = MemoryBlob::default();
        let content = NewContent::Pages { size: 1024, sequence_number: 0, ranges: Vec::new() };
        let put_pages = |content| PutBlob { blob_type: BlobType::Page, size: 1024, content, ..put(b"") };
        blob.run(put_pages(content.clone()), 1).unwrap();
        let write = |offset: u64| {
            let (conditions, sequence) = Default::default();
            let pieces = vec![partition::Piece::for_tests(1, offset, 512)];
            PutPages { start: 0, len: 512, pieces, conditions, sequence }
        };
        blob.run(write(0), 2).unwrap();
        let snapshot = TakeSnapshot { metadata: None, conditions: Conditions::default(), versioned: true };
        blob.run(snapshot, 3).unwrap();
        let pages_of = |blob: &MemoryBlob, owner: u64| {
            let prefix = regions_prefix(owner);
            let rows = blob.rows.iter().filter(|(name, _)| name.starts_with(&prefix));
            rows.map(|(_, row)| row.clone()).collect::<Vec<_>>()
        };
        let before = pages_of(&blob, 3);
        assert_eq!(before.len(), 1);
        blob.run(write(4096), 4).unwrap();
        blob.run(put_pages(content), 5).unwrap();
        assert_eq!(pages_of(&blob, 3), before, "what the snapshot has");
        assert_ne!(pages_of(&blob, 3 | VERSION_OWNER_BIT), before, "what the version has");
        blob.run(delete(Revision::Version(3), None), 6).unwrap();
        assert_eq!(pages_of(&blob, 3), before, "the version went alone");
        assert_eq!(pages_of(&blob, 3 | VERSION_OWNER_BIT).len(), 0);
    }

    /// A blob could have versions of several types, of which a client knows one.
    #[test]
    fn all_versions_of_a_blob_are_of_one_type() {
        let append = |versioned| PutBlob {
            blob_type: BlobType::Append,
            size: 0,
            content: NewContent::Pieces(Vec::new()),
            new: NewBlob::default(),
            replacement: rules(versioned),
        };
        let refused = Err(BlobError::InvalidBlobType);
        let mut blob = MemoryBlob::default();
        blob.run(put(b"one"), 1).unwrap();
        assert_eq!(blob.run(append(true), 2).map(drop), refused, "the base blob would become a version");
        blob.run(append(false), 3).unwrap();
        assert_eq!(blob.count("1v"), 0, "an account that keeps none has none");
        blob.run(append(true), 4).unwrap();
        blob.run(delete(Revision::Current, None), 5).unwrap();
        assert_eq!((blob.head().current, blob.head().versions), (None, 2));
        for versioned in [true, false] {
            let mut block = put(b"two");
            block.replacement.versioned = versioned;
            assert_eq!(blob.run(block, 6).map(drop), refused, "{versioned}");
            let list = crate::block::put_block_list::PutBlockList {
                list: Vec::new(),
                new: NewBlob::default(),
                replacement: rules(versioned),
            };
            assert_eq!(blob.run(list, 7).map(drop), refused, "{versioned}");
        }
        for version in [3, 4] {
            blob.run(delete(Revision::Version(version), None), 8).unwrap();
        }
        blob.run(put(b"two"), 9).unwrap();
    }

    /// Switching versions on once lost what had been deleted softly before.
    #[test]
    fn what_was_deleted_before_versions_were_kept_can_still_come_back() {
        let mut blob = MemoryBlob::default();
        let mut unversioned = put(b"old");
        unversioned.replacement.versioned = false;
        blob.run(unversioned, 1).unwrap();
        blob.run(DeleteBlob { versioned: false, ..delete(Revision::Current, Some(7)) }, 2).unwrap();
        let mut over = put(b"new");
        over.replacement.retention_days = Some(7);
        blob.run(over, 3).unwrap();
        assert_eq!((blob.head().deleted_snapshots, blob.count("1s")), (1, 1));
    }
}
