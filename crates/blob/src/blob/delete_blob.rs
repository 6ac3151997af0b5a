//! Snapshots, deletion, and what comes back from it.

use crate::blob::put_blob::Written;
use crate::condition::Conditions;
use crate::content::Content;
use crate::error::BlobError;
use crate::lease::Lease;
use crate::name::Pairs;
use crate::page::put_pages::copy_regions;
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::former_row::{
    SNAPSHOT_PREFIX, VERSION_PREFIX, decode_snapshot, encode_snapshot, snapshot_row,
};
use crate::rows::record::{BlobRecord, Deletion};
use crate::rows::revision::Revision;
use crate::versions::{keep_version, renew_version};
use base::Ticks;

/// Takes a snapshot.
pub(crate) struct TakeSnapshot {
    /// Instead of the blob's.
    pub(crate) metadata: Option<Pairs>,
    pub(crate) conditions: Conditions,
    /// It makes a version, too.
    pub(crate) versioned: bool,
}

impl BlobChange for TakeSnapshot {
    /// The snapshot's time, and the blob as it is.
    type Reply = (u64, Written);

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Self::Reply, Stop> {
        let live = rows.live()?;
        self.conditions.check_write(Some(live.present()))?;
        self.conditions.encryption.check_write(&live.encryption)?;
        rows.head.lease.check_read(self.conditions.lease(), now)?;
        rows.live()?.check_online(false)?;
        if self.versioned {
            renew_version(rows, now)?;
        }
        let mut record = rows.live()?.clone();
        let mut written = Written::of(&record);
        record.version.id = None;
        if let Some(metadata) = &self.metadata {
            record.metadata = metadata.clone();
            record.touch(now);
            (written.etag, written.modified_at) = (record.version.etag, record.version.modified_at);
        }
        if let Content::Pages(owner) = record.content {
            record.content = copy_regions(rows, owner, now.0)?;
        }
        rows.put(snapshot_row(now.0), encode_snapshot(&record)?);
        rows.head.snapshots += 1;
        Ok((now.0, written))
    }
}

/// What a deletion does with snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeleteSnapshots {
    /// Refuse if there are any.
    #[default]
    Refuse,
    /// They go, too.
    Include,
    /// Only they go.
    Only,
}

/// Deletes a blob, a snapshot or a version.
pub(crate) struct DeleteBlob {
    pub(crate) revision: Revision,
    pub(crate) snapshots: DeleteSnapshots,
    pub(crate) conditions: Conditions,
    /// The tier was set after this, or was not.
    pub(crate) tier: TierConditions,
    /// It can come back for so many days.
    pub(crate) retention_days: Option<u32>,
    /// The base blob stays as a version.
    pub(crate) versioned: bool,
}

/// Conditions on when a tier was set; a tier that nobody has set is as old as the blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierConditions {
    /// After this.
    pub if_modified_since: Option<Ticks>,
    /// Not after this.
    pub if_unmodified_since: Option<Ticks>,
}

impl TierConditions {
    fn check(&self, record: &BlobRecord) -> Result<(), BlobError> {
        let second = |at: Ticks| at.0 / base::clock::TICKS_PER_SECOND;
        let set_at = second(record.tier.changed_at.unwrap_or(record.version.created_at));
        let holds = self.if_modified_since.is_none_or(|at| set_at > second(at))
            && self.if_unmodified_since.is_none_or(|at| set_at <= second(at));
        if holds { Ok(()) } else { Err(BlobError::ConditionNotMet) }
    }
}

impl BlobChange for DeleteBlob {
    type Reply = ();

    fn more_rows(&self) -> Vec<String> {
        self.revision.row().into_iter().collect()
    }

    fn gives_back(&self) -> bool {
        // If it can come back, later.
        true
    }

    fn keeps_content(&self) -> bool {
        self.revision != Revision::Current || self.versioned || self.retention_days.is_some()
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<(), Stop> {
        if let Some(row) = self.revision.row() {
            if self.revision.resolve(&rows.head) == Revision::Current {
                return Err(BlobError::VersionIsCurrent.into());
            }
            let record = rows.former(&row)?;
            self.conditions.check_write(Some(record.present()))?;
            self.tier.check(&record)?;
            return match self.revision {
                Revision::Version(_) => self.delete_version(rows, row, record, now),
                _ => self.delete_snapshot(rows, row, record, now),
            };
        }
        if rows.head.live().is_none() && rows.head.staged > 0 && self.snapshots != DeleteSnapshots::Only {
            return self.delete_staged(rows, now);
        }
        let live = rows.live()?;
        self.conditions.check_write(Some(live.present()))?;
        self.tier.check(live)?;
        rows.head.lease.check_write(self.conditions.lease(), now)?;
        let had_snapshots = rows.head.snapshots > 0;
        if had_snapshots {
            if self.snapshots == DeleteSnapshots::Refuse {
                return Err(BlobError::SnapshotsPresent.into());
            }
            for name in rows.names(SNAPSHOT_PREFIX)? {
                let Some(row) = rows.row(&name)? else { continue };
                let record = decode_snapshot(row)?;
                if record.deleted.is_none() {
                    self.delete_snapshot(rows, name, record, now)?;
                }
            }
        }
        if self.snapshots == DeleteSnapshots::Only {
            // As recorded: without any the blob that is asked for is not there.
            return if had_snapshots { Ok(()) } else { Err(BlobError::BlobNotFound.into()) };
        }
        rows.clear_staged()?;
        rows.head.lease = Lease::None;
        if self.versioned {
            keep_version(rows)?;
            return match rows.head.current.take() {
                Some(record) => rows.release(&record.content),
                None => Ok(()),
            };
        }
        match self.retention_days {
            Some(days) => {
                rows.live_mut()?.deleted = Some(Deletion { at: now, days });
                Ok(())
            }
            None => match rows.head.current.take() {
                Some(record) => rows.release(&record.content),
                None => Ok(()),
            },
        }
    }
}

impl DeleteBlob {
    /// Deletes a blob of which nothing was ever committed (in Azure since version 2013-08-15).
    fn delete_staged(&self, rows: &mut BlobRows, now: Ticks) -> Result<(), Stop> {
        self.conditions.check_write(None)?;
        rows.head.lease.check_write(self.conditions.lease(), now)?;
        rows.head.lease = Lease::None;
        rows.clear_staged()
    }

    fn delete_version(
        &self,
        rows: &mut BlobRows,
        row: String,
        mut record: BlobRecord,
        now: Ticks,
    ) -> Result<(), Stop> {
        if let Some(days) = self.retention_days {
            record.deleted = Some(Deletion { at: now, days });
            rows.put(row, encode_snapshot(&record)?);
            return Ok(());
        }
        rows.head.versions -= 1;
        rows.delete(&row);
        rows.release(&record.content)
    }

    fn delete_snapshot(
        &self,
        rows: &mut BlobRows,
        row: String,
        mut record: BlobRecord,
        now: Ticks,
    ) -> Result<(), Stop> {
        rows.head.snapshots -= 1;
        match self.retention_days {
            Some(days) => {
                record.deleted = Some(Deletion { at: now, days });
                rows.head.deleted_snapshots += 1;
                rows.put(row, encode_snapshot(&record)?);
                Ok(())
            }
            None => {
                rows.delete(&row);
                rows.release(&record.content)
            }
        }
    }
}

/// Brings back what was deleted and can come back.
pub(crate) struct Undelete;

impl BlobChange for Undelete {
    type Reply = ();

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<(), Stop> {
        let comes_back =
            |deleted: Option<Deletion>| deleted.is_none_or(|deleted| deleted.days_left(now).is_some());
        // What is over is as good as gone, whether or not it was removed.
        let mut is_there = rows.head.versions > 0;
        if let Some(current) = rows.head.current.as_mut().filter(|current| comes_back(current.deleted)) {
            current.deleted = None;
            is_there = true;
        }
        if rows.head.deleted_snapshots > 0 {
            for name in rows.names(SNAPSHOT_PREFIX)? {
                let Some(row) = rows.row(&name)? else { continue };
                let mut record = decode_snapshot(row)?;
                if record.deleted.is_some() && comes_back(record.deleted) {
                    record.deleted = None;
                    rows.head.deleted_snapshots -= 1;
                    rows.head.snapshots += 1;
                    rows.put(name, encode_snapshot(&record)?);
                    is_there = true;
                }
            }
        }
        if rows.head.versions > 0 {
            for name in rows.names(VERSION_PREFIX)? {
                let Some(row) = rows.row(&name)? else { continue };
                let mut record = decode_snapshot(row)?;
                if record.deleted.is_some() && comes_back(record.deleted) {
                    record.deleted = None;
                    rows.put(name, encode_snapshot(&record)?);
                }
            }
        }
        if is_there { Ok(()) } else { Err(BlobError::BlobNotFound.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::put_blob::{NewContent, PutBlob};
    use crate::rows::decision::memory_blob::MemoryBlob;
    use crate::rows::record::BlobType;
    use bytes::Bytes;

    const DAY: u64 = 86_400 * base::clock::TICKS_PER_SECOND;

    fn put() -> PutBlob {
        let content = NewContent::Inline(Bytes::from_static(b"x"));
        let (new, replacement) = Default::default();
        PutBlob { blob_type: BlobType::Block, size: 1, content, new, replacement }
    }

    fn snapshot() -> TakeSnapshot {
        TakeSnapshot { metadata: None, conditions: Conditions::default(), versioned: false }
    }

    fn delete(snapshot: Option<u64>, snapshots: DeleteSnapshots, retention_days: Option<u32>) -> DeleteBlob {
        let (conditions, tier) = (Conditions::default(), TierConditions::default());
        let revision = snapshot.map_or(Revision::Current, Revision::Snapshot);
        DeleteBlob { revision, snapshots, conditions, tier, retention_days, versioned: false }
    }

    #[test]
    fn the_tiers_age_can_be_a_condition() {
        let second = base::clock::TICKS_PER_SECOND;
        let mut blob = MemoryBlob::default();
        blob.run(put(), 10 * second).unwrap();
        let at = |since: Option<u64>, until: Option<u64>| {
            let ticks = |seconds: Option<u64>| seconds.map(|seconds| Ticks(seconds * second));
            let tier = TierConditions { if_modified_since: ticks(since), if_unmodified_since: ticks(until) };
            DeleteBlob { tier, ..delete(None, DeleteSnapshots::Refuse, None) }
        };
        assert_eq!(blob.run(at(Some(10), None), 11 * second), Err(BlobError::ConditionNotMet));
        assert_eq!(blob.run(at(None, Some(9)), 11 * second), Err(BlobError::ConditionNotMet));
        assert_eq!(blob.run(at(Some(9), Some(10)), 11 * second), Ok(()));
    }

    #[test]
    fn a_blob_with_snapshots_goes_only_with_them() {
        let mut blob = MemoryBlob::default();
        blob.run(put(), 1).unwrap();
        assert_eq!(blob.run(snapshot(), 2).unwrap().0, 2);
        blob.run(snapshot(), 3).unwrap();
        let refused = blob.run(delete(None, DeleteSnapshots::Refuse, None), 4);
        assert_eq!(refused, Err(BlobError::SnapshotsPresent));
        blob.run(delete(Some(2), DeleteSnapshots::Refuse, None), 5).unwrap();
        assert_eq!(blob.run(delete(Some(2), DeleteSnapshots::Refuse, None), 6), Err(BlobError::BlobNotFound));
        blob.run(delete(None, DeleteSnapshots::Only, None), 7).unwrap();
        assert_eq!((blob.head().snapshots, blob.head().live().is_some()), (0, true));
        let none_left = blob.run(delete(None, DeleteSnapshots::Only, None), 7);
        assert_eq!(none_left, Err(BlobError::BlobNotFound));
        blob.run(snapshot(), 8).unwrap();
        blob.run(delete(None, DeleteSnapshots::Include, None), 9).unwrap();
        assert_eq!(blob.rows.len(), 0, "nothing is left");
    }

    #[test]
    fn what_is_kept_comes_back_in_time() {
        let mut blob = MemoryBlob::default();
        blob.run(put(), 1).unwrap();
        blob.run(snapshot(), 2).unwrap();
        blob.run(delete(None, DeleteSnapshots::Include, Some(1)), 3).unwrap();
        assert!(blob.head().live().is_none());
        assert_eq!(blob.run(snapshot(), 4), Err(BlobError::BlobNotFound));
        blob.run(Undelete, 5).unwrap();
        assert_eq!((blob.head().snapshots, blob.head().live().is_some()), (1, true));
        blob.run(Undelete, 6).unwrap();
        blob.run(delete(None, DeleteSnapshots::Include, Some(1)), 7).unwrap();
        assert_eq!(blob.run(Undelete, 7 + DAY), Err(BlobError::BlobNotFound));
    }

    /// A base blob that was over but not removed yet kept what was deleted after it from coming back.
    #[test]
    fn what_is_over_is_in_nobodys_way() {
        let mut blob = MemoryBlob::default();
        blob.run(put(), 1).unwrap();
        blob.run(snapshot(), 2).unwrap();
        blob.run(delete(Some(2), DeleteSnapshots::Refuse, Some(9)), 3).unwrap();
        blob.run(delete(None, DeleteSnapshots::Refuse, Some(1)), 4).unwrap();
        blob.run(Undelete, 4 + DAY).unwrap();
        assert_eq!((blob.head().snapshots, blob.head().live().is_some()), (1, false), "only the snapshot");
        blob.run(delete(Some(2), DeleteSnapshots::Refuse, Some(1)), 5 + DAY).unwrap();
        assert_eq!(blob.run(Undelete, 5 + 2 * DAY), Err(BlobError::BlobNotFound), "both are over");
    }

    /// A page blob with more regions than one operation may see once could not be deleted: 503, however often
    /// it was tried. Its pages are marked now, and removed bit by bit.
    #[test]
    fn a_page_blob_of_very_many_regions_can_be_deleted() {
        let mut blob = MemoryBlob::default();
        let create = || {
            let content = NewContent::Pages { size: 1 << 43, sequence_number: 0, ranges: Vec::new() };
            PutBlob { blob_type: BlobType::Page, size: 0, content, ..put() }
        };
        blob.run(create(), 1).unwrap();
        let region = crate::page::pages::encode_region(0, &[]);
        let count = crate::limits::ROWS_OF_A_BLOB_MAX + 10;
        for index in 0..count as u64 {
            blob.rows.insert(crate::rows::region_row::region_row(0, index), region.clone().into());
        }
        assert_eq!(blob.run(snapshot(), 2), Err(BlobError::TooManyRows));
        blob.run(delete(None, DeleteSnapshots::Refuse, None), 3).unwrap();
        assert!(blob.head().current.is_none());
        let early = blob.run(create(), 4);
        assert_eq!(
            early,
            Err(BlobError::Partition(partition::PartitionError::Busy)),
            "it would find old pages"
        );
        blob.run(put(), 5).unwrap();
        assert!(blob.remove_pages(0, 6) > 2);
        blob.run(create(), 7).unwrap();
        assert_eq!((blob.count("4p"), blob.count("0g"), blob.rows.len()), (0, 0, 1));
    }
}
