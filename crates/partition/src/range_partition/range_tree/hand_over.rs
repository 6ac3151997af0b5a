//! Handing over: this range brings nearly everything to checkpoints, leaves these and the rest of its rows to
//! other ranges while it goes on, stops deciding for the last of them, or goes on if the others can't take
//! over.
//!
//! What always holds: between [`RangeTree::pause`] and its end no operation is decided and none fails
//! for it: each gets `Moved` and comes again. Gets and scans go on over what is there.

use super::{RangeTree, Standing};
use crate::checkpoint::Caching;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey};
use crate::operation::{RowChange, RowVersion};
use crate::range_partition::load::RangeStreams;
use crate::tree::Tree;
use crate::tree::checkpoints::Checkpoints;
use crate::tree::merging_iterator::MergingIterator;
use bytes::Bytes;
use std::sync::atomic::Ordering;
use stream::{StreamChange, StreamName};
use tokio::sync::MutexGuard;

/// Versions, the first one excluded, the last one included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) after: RowVersion,
    pub(crate) up_to: RowVersion,
}

impl RangeTree {
    /// Keeps merges away until the guard is dropped and [`Self::resume`] is called; one under way gives up.
    pub(crate) async fn hold_merges(&self) -> MutexGuard<'_, ()> {
        self.gate.leaving.store(true, Ordering::Release);
        self.gate.merging.lock().await
    }

    /// Keeps what is in memory there until the guard is dropped and [`Self::resume`] is called.
    pub(crate) async fn hold_flushes(&self) -> MutexGuard<'_, ()> {
        // Flushes of other ranges must not wait behind the lock.
        self.gate.keeps_memory.store(true, Ordering::Release);
        self.gate.flushing.lock().await
    }

    /// Bytes of changes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.tree().memory_tables().map(|table| table.size_bytes()).sum()
    }

    /// From now on nothing is decided with a version up to `floor`. Returns a version up to which all changes
    /// that there will ever be are durable, and in memory or a checkpoint.
    pub(crate) fn settle(&self, floor: RowVersion) -> RowVersion {
        let mut serial = self.serial.lock();
        serial.version_floor = serial.version_floor.max(floor);
        settled_version(self.visible(), serial.last_version, serial.version_floor)
    }

    /// The newest changes of rows of `range` that are in memory and have one of these versions, deletions
    /// included, in key order.
    pub(crate) async fn changes_in_memory(
        &self,
        range: &KeyRange,
        versions: Versions,
    ) -> Result<Vec<(RowVersion, RowChange)>, PartitionError> {
        let mut memory = Tree { checkpoints: Checkpoints::default(), ..Tree::clone(&self.tree()) };
        // What was copied is not walked over again.
        memory.frozen.retain(|frozen| frozen.last_version > versions.after);
        let mut rows = MergingIterator::over_tree(&memory, range, versions.up_to, Caching::Bypass).await?;
        let mut changes = Vec::new();
        // Rows in memory have their overflows in them.
        while let Some(row) = rows.row() {
            let version = row.version;
            if version > versions.after {
                let key = RowKey::from_bytes(Bytes::copy_from_slice(row.key));
                changes.push(match rows.value() {
                    Some(value) => (version, RowChange::Put { key, value }),
                    None => (version, RowChange::Delete { key }),
                });
            }
            rows.step().await?;
        }
        Ok(changes)
    }

    /// Stops deciding. What it returns ends when all that was decided is durable.
    pub(crate) fn pause(
        &self,
    ) -> Result<impl Future<Output = Result<(), PartitionError>> + use<>, PartitionError> {
        let decided = {
            let mut serial = self.serial.lock();
            match &serial.standing {
                Standing::Open => serial.standing = Standing::HandingOver,
                Standing::Closed(error) => return Err(error.clone()),
                Standing::HandingOver | Standing::Gone => {
                    return Err(PartitionError::Unavailable("range is being handed over".to_owned()));
                }
            }
            serial.pending.wait()
        };
        self.log.wake.notify_one();
        Ok(decided)
    }

    /// Lets the group that gathers become durable soon.
    pub(crate) fn hurry(&self) {
        self.log.wake.notify_one();
    }

    /// The version of the newest decision.
    pub(crate) fn last_version(&self) -> RowVersion {
        self.serial.lock().last_version
    }

    /// Goes on after a hand-over that did not happen.
    pub(crate) fn resume(&self) {
        self.gate.leaving.store(false, Ordering::Release);
        self.gate.keeps_memory.store(false, Ordering::Release);
        let mut serial = self.serial.lock();
        if serial.standing == Standing::HandingOver {
            serial.standing = Standing::Open;
        }
    }

    /// Nobody knows whether other ranges have taken over: nothing is written here until the next start.
    pub(crate) fn fail(&self, why: &PartitionError) {
        self.gate.keeps_memory.store(false, Ordering::Release);
        self.serial.lock().standing.close(why);
        self.tell_waiting_writers();
        self.log.wake.notify_one();
    }

    /// Other ranges have taken over.
    pub(crate) fn leave(&self) {
        self.serial.lock().standing = Standing::Gone;
        // Its rows count for the others: what a slow reader keeps of it must hold up no writer.
        self.tree().memory_tables().for_each(|memory| memory.release());
        // There will be no flush here any more: who waits for one goes to the others.
        self.tell_waiting_writers();
        self.log.wake.notify_one();
    }

    /// Whether operations get `Moved`, and come again.
    pub(crate) fn is_handing_over(&self) -> bool {
        self.serial.lock().standing == Standing::HandingOver
    }

    /// Whether other ranges have taken over.
    pub(crate) fn has_left(&self) -> bool {
        self.serial.lock().standing == Standing::Gone
    }

    /// Removes all its streams: the partition map does not name it any more and nobody reads it.
    pub(crate) async fn delete_streams(&self) -> Result<(), PartitionError> {
        let streams = self.shared.streams.list(&RangeStreams::folder(self.table, self.id));
        let owned = |stream: StreamName| StreamChange::Delete(stream.owned_by(self.owner));
        let deletes: Vec<_> = streams.into_iter().map(owned).collect();
        Ok(self.shared.streams.multi_modify(&deletes).await?)
    }
}

/// A version up to which a range has decided all that it ever will, and all of it is durable: whatever comes
/// is newer than `floor` and than its last decision.
fn settled_version(visible: RowVersion, last: RowVersion, floor: RowVersion) -> RowVersion {
    if visible < last { visible } else { visible.max(floor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_settles_at_what_is_durable_and_an_idle_one_at_the_floor() {
        for (visible, last, floor, expected) in [(5, 5, 9, 9), (5, 7, 9, 5), (5, 7, 6, 5), (5, 5, 3, 5)] {
            let settled = settled_version(RowVersion(visible), RowVersion(last), RowVersion(floor));
            assert_eq!(settled, RowVersion(expected), "{visible} {last} {floor}");
        }
    }
}
