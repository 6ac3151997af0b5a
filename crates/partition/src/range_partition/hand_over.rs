//! Handing over: this range brings nearly everything to checkpoints, stops deciding, and leaves its checkpoints and the
//! small rest of its rows to other ranges, or goes on if they can't take over.
//!
//! What always holds: between [`RangePartition::pause`] and its end no operation is decided and none fails for it:
//! each is told `Moved` and comes again. Gets and scans go on over what is there.

use super::load::RangeStreams;
use super::{RangePartition, Standing};
use crate::checkpoint::Caching;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey};
use crate::merge_cursor::MergeCursor;
use crate::operation::{ObjectTable, RowChange, RowVersion};
use crate::range_partition::Flush;
use crate::tree::Tree;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::StreamChange;

/// A flush whose table is not durable yet looks again after this long.
const DURABILITY_POLL_AFTER: Duration = Duration::from_millis(1);

/// Rounds of flushes before a pause, at most: each finds what was written during the one before.
const FLUSH_ROUND_COUNT_MAX: usize = 3;
/// Bytes in memory at which no further round before the pause is worth it.
const REST_SIZE_BYTES: u64 = 1 << 20;
/// Bytes in memory that are handed over as rows, at most: they are written to the heirs' logs while writers wait. More
/// becomes a checkpoint first.
const REST_SIZE_BYTES_MAX: u64 = 8 << 20;

/// What a paused range leaves.
pub(crate) struct Estate {
    /// At one moment: what is not in its checkpoints is in its memory tables.
    pub(super) tree: Arc<Tree>,
    pub(super) last_version: RowVersion,
}

impl Estate {
    /// The newest changes of rows of `range` that are only in memory, deletions included, in key order.
    pub(super) async fn rest(
        &self,
        range: &KeyRange,
    ) -> Result<Vec<(RowVersion, RowChange)>, PartitionError> {
        let memory = Tree { checkpoints: Vec::new(), ..Tree::clone(&self.tree) };
        let newest = RowVersion(u64::MAX);
        let mut rows = MergeCursor::over_tree(&memory, range, newest, Caching::Bypass).await?;
        let mut rest = Vec::new();
        while let Some(row) = rows.row() {
            let (key, version) = (RowKey::from_bytes(Bytes::copy_from_slice(row.key)), row.version);
            rest.push(match rows.value() {
                Some(value) => (version, RowChange::Put { key, value }),
                None => (version, RowChange::Delete { key }),
            });
            rows.step().await?;
        }
        Ok(rest)
    }
}

impl RangePartition {
    /// Keeps merges away until the guard is dropped and [`Self::resume`] is called; one under way gives up.
    pub(crate) async fn hold_merges(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.leaving.store(true, Ordering::Release);
        self.merging.lock().await
    }

    /// Brings what is in memory to checkpoints, beside the writers, until what they have added meanwhile is so little that
    /// nobody notices the pause in which it is handed over.
    pub(crate) async fn flush_most(&self) -> Result<(), PartitionError> {
        for _ in 0..FLUSH_ROUND_COUNT_MAX {
            self.flush_all().await?;
            if self.tree.load().active.size_bytes() < REST_SIZE_BYTES {
                break;
            }
        }
        Ok(())
    }

    /// Brings what is in memory now to checkpoints, beside the writers.
    pub(crate) async fn flush_all(&self) -> Result<(), PartitionError> {
        self.flush_frozen().await?;
        self.freeze_active();
        self.flush_frozen().await
    }

    async fn flush_frozen(&self) -> Result<(), PartitionError> {
        loop {
            match self.flush().await? {
                Flush::Nothing => return Ok(()),
                Flush::Done => {}
                Flush::NotYet => {
                    if let Standing::Closed(error) = &self.serial.lock().standing {
                        return Err(error.clone());
                    }
                    self.commit_wake.notify_one();
                    self.shared.clock.sleep(DURABILITY_POLL_AFTER).await;
                }
            }
        }
    }

    /// Stops deciding; returns when all that was decided is durable.
    pub(crate) async fn pause(&self) -> Result<(), PartitionError> {
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
        self.commit_wake.notify_one();
        decided.await
    }

    /// Goes on after a hand-over that did not happen.
    pub(crate) fn resume(&self) {
        self.leaving.store(false, Ordering::Release);
        let mut serial = self.serial.lock();
        if serial.standing == Standing::HandingOver {
            serial.standing = Standing::Open;
        }
    }

    /// Nobody knows whether other ranges have taken over: nothing is written here until the next start.
    pub(crate) fn fail(&self, why: &PartitionError) {
        self.serial.lock().standing.close(why);
        self.tell_waiting_writers();
        self.commit_wake.notify_one();
    }

    /// Other ranges have taken over.
    pub(crate) fn leave(&self) {
        self.serial.lock().standing = Standing::Gone;
        // There will be no flush here any more: who waits for one goes to the others.
        self.tell_waiting_writers();
        self.commit_wake.notify_one();
    }

    /// Whether operations are told to come again.
    pub(crate) fn is_handing_over(&self) -> bool {
        self.serial.lock().standing == Standing::HandingOver
    }

    /// What it leaves: everything, because it is paused.
    pub(crate) async fn estate(&self) -> Result<Estate, PartitionError> {
        let in_memory = |tree: &Tree| tree.memory_tables().map(|table| table.size_bytes()).sum::<u64>();
        if in_memory(&self.tree()) > REST_SIZE_BYTES_MAX {
            self.flush_all().await?;
        }
        let last_version = self.serial.lock().last_version;
        let tree = self.tree();
        if self.visible() != last_version {
            let what = "a range is handed over before all it has decided is durable";
            return Err(PartitionError::Storage(what.to_owned()));
        }
        Ok(Estate { tree, last_version })
    }

    /// Start of the names of all streams of the range with this id.
    pub(crate) fn streams_folder(table: ObjectTable, id: u64) -> String {
        RangeStreams::folder(table, id)
    }

    /// Removes all its streams: the partition map does not name it any more and nobody reads it.
    pub(crate) async fn delete_streams(&self) -> Result<(), PartitionError> {
        let streams = self.shared.streams.list(&RangeStreams::folder(self.table, self.id));
        let deletes: Vec<_> = streams.into_iter().map(StreamChange::Delete).collect();
        Ok(self.shared.streams.multi_modify(&deletes).await?)
    }
}
