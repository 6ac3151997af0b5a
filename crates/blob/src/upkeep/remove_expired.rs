//! Removes what was deleted and can't come back any more (the base blob, snapshots and versions), and staged
//! blocks that nobody has added to for long.

use crate::lease::Lease;
use crate::limits::STAGED_BLOCKS_KEPT_FOR_TICKS;
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::former_row::{SNAPSHOT_PREFIX, VERSION_PREFIX, decode_snapshot};
use crate::rows::head_row::Head;
use crate::rows::record::Deletion;
use base::Ticks;

/// Whether the time after a deletion is over.
pub(crate) fn is_over(deleted: Option<Deletion>, now: Ticks) -> bool {
    deleted.is_some_and(|deleted| deleted.days_left(now).is_none())
}

/// What is to be done about staged blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Staged {
    /// Nothing.
    Keep,
    /// A former format did not say when they were staged: they count from now on.
    Date,
    /// They go.
    Forget,
}

impl Staged {
    pub(crate) fn choose(head: &Head, now: Ticks) -> Self {
        match head.staged_at.0 {
            _ if head.staged == 0 => Staged::Keep,
            0 => Staged::Date,
            at if now.0.saturating_sub(at) >= STAGED_BLOCKS_KEPT_FOR_TICKS => Staged::Forget,
            _ => Staged::Keep,
        }
    }
}

/// Snapshots and versions that are removed at once, at most; those that are left have their turn in the next
/// round. With as many chunks as they may have, and names as long, they fit into one operation.
const REMOVED_AT_ONCE_MAX: u64 = 1000;

/// Removes what of one name has expired.
pub(crate) struct RemoveExpired;

impl BlobChange for RemoveExpired {
    /// How many: base blob, snapshots, versions, and the staged blocks as one.
    type Reply = u64;

    fn gives_back(&self) -> bool {
        true
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<u64, Stop> {
        let mut removed = 0;
        if rows.head.deleted_snapshots > 0 {
            for name in rows.first_names(SNAPSHOT_PREFIX)? {
                if removed >= REMOVED_AT_ONCE_MAX {
                    break;
                }
                let Some(row) = rows.row(&name)? else { continue };
                let record = decode_snapshot(row)?;
                if is_over(record.deleted, now) {
                    rows.delete(&name);
                    rows.head.deleted_snapshots -= 1;
                    rows.release(&record.content)?;
                    removed += 1;
                }
            }
        }
        if rows.head.versions > 0 {
            for name in rows.first_names(VERSION_PREFIX)? {
                if removed >= REMOVED_AT_ONCE_MAX {
                    break;
                }
                let Some(row) = rows.row(&name)? else { continue };
                let record = decode_snapshot(row)?;
                if is_over(record.deleted, now) {
                    rows.delete(&name);
                    rows.head.versions -= 1;
                    rows.release(&record.content)?;
                    removed += 1;
                }
            }
        }
        match Staged::choose(&rows.head, now) {
            Staged::Keep => {}
            Staged::Date => rows.head.staged_at = now,
            Staged::Forget => {
                rows.clear_staged()?;
                removed += 1;
            }
        }
        if let Some(record) = rows.head.current.take_if(|current| is_over(current.deleted, now)) {
            rows.release(&record.content)?;
            removed += 1;
        }
        // A lease of nothing could be neither ended nor held: it would keep the name for ever. A blob that is
        // softly deleted has none.
        if rows.head.live().is_none() && rows.head.staged == 0 {
            rows.head.lease = Lease::None;
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::delete_blob::{DeleteBlob, DeleteSnapshots, TakeSnapshot, Undelete};
    use crate::blob::put_blob::{NewBlob, NewContent, PutBlob};
    use crate::blob::replacement::Replacement;
    use crate::blob::set_blob::LeaseBlob;
    use crate::block::put_block::PutBlock;
    use crate::condition::Conditions;
    use crate::lease::LeaseAction;
    use crate::rows::decision::memory_blob::MemoryBlob;
    use crate::rows::record::BlobType;
    use crate::rows::revision::Revision;
    use bytes::Bytes;

    const DAY: u64 = 86_400 * base::clock::TICKS_PER_SECOND;

    fn put(retention_days: Option<u32>) -> PutBlob {
        let content = NewContent::Inline(Bytes::from_static(b"x"));
        let replacement = Replacement { retention_days, ..Replacement::default() };
        PutBlob { blob_type: BlobType::Block, size: 1, content, new: NewBlob::default(), replacement }
    }

    fn delete(retention_days: u32) -> DeleteBlob {
        let (snapshots, conditions) = (DeleteSnapshots::Include, Conditions::default());
        let (revision, tier) = Default::default();
        let retention_days = Some(retention_days);
        DeleteBlob { revision, snapshots, conditions, tier, retention_days, versioned: false }
    }

    /// A lease of a blob whose blocks were dropped could be ended by nobody, and kept everybody from its
    /// name.
    #[test]
    fn a_lease_goes_with_the_blocks_that_it_is_of() {
        let id = || "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".to_owned();
        let stage = || {
            let id = Bytes::from_static(b"a");
            let (pieces, encryption) = Default::default();
            PutBlock { id, size: 0, pieces, lease: None, encryption, create_only: false }
        };
        let lease = || LeaseBlob {
            action: LeaseAction::Acquire { seconds: None, id: id() },
            conditions: Conditions::default(),
        };
        let late = 2 + STAGED_BLOCKS_KEPT_FOR_TICKS;
        let mut blob = MemoryBlob::default();
        blob.run(stage(), 1).unwrap();
        assert_eq!(blob.run(lease(), 2).unwrap().1, None, "nothing is committed");
        assert_eq!(blob.run(RemoveExpired, 3), Ok(0));
        assert_eq!(blob.run(RemoveExpired, late), Ok(1));
        assert_eq!(blob.rows.len(), 0);
        // Of what is committed it stays.
        blob.run(put(None), 1).unwrap();
        blob.run(stage(), 2).unwrap();
        blob.run(lease(), 3).unwrap();
        assert_eq!(blob.run(RemoveExpired, late), Ok(1));
        assert!(matches!(blob.head().lease, Lease::Leased { .. }));
        // A blob that is deleted, and still kept, holds no lease, whichever of the two goes first.
        for days in [1, 30] {
            let mut blob = MemoryBlob::default();
            blob.run(put(None), 1).unwrap();
            blob.run(delete(days), 2).unwrap();
            blob.run(stage(), 3).unwrap();
            blob.run(lease(), 4).unwrap();
            for now in [late + 3, 31 * DAY] {
                blob.run(RemoveExpired, now).unwrap();
                assert!(blob.head().live().is_some() || blob.head().lease == Lease::None, "{days} {now}");
            }
            assert_eq!(blob.rows.len(), 0, "{days}");
        }
    }

    /// More deleted snapshots than one operation may look at once kept all of them for ever.
    #[test]
    fn very_many_go_a_thousand_at_a_time() {
        let mut blob = MemoryBlob::default();
        blob.run(put(None), 1).unwrap();
        let mut head = blob.head();
        let mut record = head.current.clone().unwrap();
        record.deleted = Some(Deletion { at: Ticks(1), days: 1 });
        let row = bytes::Bytes::from(crate::rows::former_row::encode_snapshot(&record).unwrap());
        let count = crate::limits::ROWS_OF_A_BLOB_MAX as u64 + 10;
        for at in 1..=count {
            blob.rows.insert(crate::rows::former_row::snapshot_row(at), row.clone());
        }
        head.deleted_snapshots = count as u32;
        blob.rows.insert(crate::rows::head_row::HEAD.to_owned(), head.encode().unwrap().into());
        assert_eq!(blob.run(RemoveExpired, 2 * DAY), Ok(1000));
        assert_eq!(blob.run(RemoveExpired, 2 * DAY), Ok(1000));
        assert_eq!(u64::from(blob.head().deleted_snapshots), count - 2000);
        assert_eq!(blob.count(SNAPSHOT_PREFIX) as u64, count - 2000);
    }

    /// Blocks that were staged and never committed once stayed for ever.
    #[test]
    fn staged_blocks_go_after_a_week_without_another_one() {
        let mut blob = MemoryBlob::default();
        let stage = |blob: &mut MemoryBlob, id: &'static [u8], now| {
            let pieces = vec![partition::Piece::for_tests(1, 0, 10)];
            let (lease, encryption) = Default::default();
            blob.run(
                PutBlock {
                    id: Bytes::from_static(id),
                    size: 10,
                    pieces,
                    lease,
                    encryption,
                    create_only: false,
                },
                now,
            )
            .unwrap();
        };
        stage(&mut blob, b"1", DAY);
        assert_eq!(blob.run(RemoveExpired, 8 * DAY - 1), Ok(0));
        stage(&mut blob, b"2", 8 * DAY - 1);
        assert_eq!(blob.run(RemoveExpired, 8 * DAY), Ok(0), "they are not idle");
        assert_eq!((blob.head().staged, blob.head().staged_at), (2, Ticks(8 * DAY - 1)));
        assert_eq!(blob.run(RemoveExpired, 15 * DAY), Ok(1));
        assert_eq!(blob.rows.len(), 0, "nothing is left");

        // As a former format has it.
        blob.run(put(None), 16 * DAY).unwrap();
        stage(&mut blob, b"1", 17 * DAY);
        let head = Head { staged_at: Ticks(0), ..blob.head() };
        blob.rows.insert(crate::rows::head_row::HEAD.to_owned(), head.encode().unwrap().into());
        assert_eq!(blob.run(RemoveExpired, 20 * DAY), Ok(0));
        assert_eq!(blob.run(RemoveExpired, 26 * DAY), Ok(0));
        assert_eq!(blob.run(RemoveExpired, 27 * DAY), Ok(1));
        assert_eq!((blob.rows.len(), blob.head().live().is_some()), (1, true), "the blob stays");
    }

    #[test]
    fn what_is_over_goes_and_the_rest_can_still_come_back() {
        let mut blob = MemoryBlob::default();
        blob.run(put(None), 1).unwrap();
        let conditions = Conditions::default();
        blob.run(TakeSnapshot { metadata: None, conditions, versioned: false }, 2).unwrap();
        // Overwritten with a retention of two days, deleted with one of one.
        blob.run(put(Some(2)), 3).unwrap();
        assert_eq!(blob.run(RemoveExpired, 4), Ok(0));
        blob.run(delete(1), 5).unwrap();
        assert_eq!(blob.run(RemoveExpired, DAY), Ok(0));
        assert_eq!(blob.run(RemoveExpired, 5 + DAY), Ok(2), "the blob and its snapshot");
        assert_eq!((blob.head().deleted_snapshots, blob.count("1s")), (1, 1), "what was overwritten");
        blob.run(Undelete, 6 + DAY).unwrap();
        assert_eq!(blob.head().snapshots, 1);
        blob.run(put(None), 7 + DAY).unwrap();
        blob.run(delete(1), 8 + DAY).unwrap();
        assert_eq!(blob.run(RemoveExpired, 8 + 2 * DAY), Ok(2));
        assert_eq!(blob.rows.len(), 0, "nothing is left");
    }

    #[test]
    fn a_deleted_version_goes_when_its_time_is_over() {
        let mut blob = MemoryBlob::default();
        let versioned = |now: u64| {
            let mut put = put(None);
            put.replacement.versioned = true;
            (put, now)
        };
        for (put, now) in [versioned(1), versioned(2)] {
            blob.run(put, now).unwrap();
        }
        let former = DeleteBlob { revision: Revision::Version(1), ..delete(1) };
        blob.run(former, 3).unwrap();
        assert_eq!(blob.run(RemoveExpired, 4), Ok(0));
        assert_eq!(blob.run(RemoveExpired, 3 + DAY), Ok(1));
        assert_eq!((blob.head().versions, blob.rows.len(), blob.head().live().is_some()), (0, 1, true));
    }
}
