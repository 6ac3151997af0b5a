//! Former versions: what a write replaces stays under its id, where an account keeps versions.
//!
//! An id is the time of the write that made the version, and the version of its row; so ids never repeat under one name.

use crate::blob_rows::{BlobRows, Stop, encode_snapshot, version_row};
use crate::content::Content;
use crate::put_pages::copy_regions;
use crate::record::BlobRecord;
use base::Ticks;

/// Stores the base blob under its id; it stays the base blob, too, until the caller changes that.
pub(crate) fn keep_version(rows: &mut BlobRows) -> Result<(), Stop> {
    let Some(live) = rows.head.live() else { return Ok(()) };
    let mut former: BlobRecord = live.clone();
    // Whatever was written before versions were kept gets the time of its last change, which nothing else has.
    let id = former.version.unwrap_or(former.etag);
    former.version = Some(id);
    if let Content::Pages(owner) = former.content {
        former.content = copy_regions(rows, owner, id)?;
    }
    rows.put(version_row(id), encode_snapshot(&former));
    rows.head.versions += 1;
    Ok(())
}

/// A change that is not a new blob makes a new version of the base blob.
pub(crate) fn renew_version(rows: &mut BlobRows, now: Ticks) -> Result<(), Stop> {
    keep_version(rows)?;
    if let Some(current) = &mut rows.head.current {
        current.version = Some(now.0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::blob_rows::Revision;
    use crate::blob_rows::memory::MemoryBlob;
    use crate::condition::Conditions;
    use crate::delete_blob::{DeleteBlob, DeleteSnapshots, TakeSnapshot, TierConditions, Undelete};
    use crate::error::BlobError;
    use crate::put_blob::{NewBlob, NewContent, PutBlob};
    use crate::record::BlobType;
    use crate::set_blob::SetMetadata;
    use bytes::Bytes;

    fn put(bytes: &'static [u8]) -> PutBlob {
        PutBlob {
            blob_type: BlobType::Block,
            size: bytes.len() as u64,
            content: NewContent::Inline(Bytes::from_static(bytes)),
            new: NewBlob { versioned: true, ..NewBlob::default() },
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
        let before = PutBlob { new: NewBlob::default(), ..put(b"old") };
        assert_eq!(blob.run(before, 1).unwrap().version, None);
        blob.run(put(b"new"), 2).unwrap();
        assert!(blob.rows.contains_key(&crate::blob_rows::version_row(1)));
        let plain = PutBlob { new: NewBlob::default(), ..put(b"plain") };
        blob.run(plain, 3).unwrap();
        assert_eq!(blob.head().versions, 1, "an account that keeps none replaces");
    }
}
