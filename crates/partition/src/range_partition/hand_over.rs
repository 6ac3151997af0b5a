//! Handing over: this range stops deciding, brings everything to checkpoints, and leaves its rows to other ranges, or
//! goes on if they can't take over.
//!
//! What always holds: between [`RangePartition::pause`] and its end no operation is decided and none fails for it:
//! each is told `Moved` and comes again. Gets and scans go on over what is there.

use super::load::RangeStreams;
use super::{RangePartition, Standing};
use crate::error::PartitionError;
use crate::operation::{ObjectTable, RowVersion};
use crate::range_partition::Flush;
use crate::tree::TreeCheckpoint;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::StreamChange;

/// A flush whose table is not durable yet looks again after this long.
const DURABILITY_POLL_AFTER: Duration = Duration::from_millis(1);

/// Rounds of flushes before a pause, at most: each finds what was written during the one before.
const FLUSH_ROUND_COUNT_MAX: usize = 3;
/// Bytes in memory that may be left for the flush in the pause.
const REST_SIZE_BYTES: u64 = 1 << 20;

/// What a paused range leaves.
pub(crate) struct Estate {
    /// Newest first.
    pub(super) checkpoints: Vec<Arc<TreeCheckpoint>>,
    pub(super) last_version: RowVersion,
}

impl RangePartition {
    /// Keeps merges away until the guard is dropped and [`Self::resume`] is called; one under way gives up.
    pub(crate) async fn hold_merges(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.leaving.store(true, Ordering::Release);
        self.merging.lock().await
    }

    /// Brings what is in memory to checkpoints, beside the writers, until what they have added meanwhile is so little that
    /// nobody notices the pause in which it is flushed.
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
        super::commit::outcome(decided).await
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
        self.commit_wake.notify_one();
    }

    /// Whether operations are told to come again.
    pub(crate) fn is_handing_over(&self) -> bool {
        self.serial.lock().standing == Standing::HandingOver
    }

    /// What it leaves: everything, because it is paused and flushed.
    pub(crate) fn estate(&self) -> Result<Estate, PartitionError> {
        let last_version = self.serial.lock().last_version;
        let tree = self.tree();
        if !tree.frozen.is_empty() || tree.active.size_bytes() > 0 {
            return Err(PartitionError::Storage("a range is handed over before it is flushed".to_owned()));
        }
        Ok(Estate { checkpoints: tree.checkpoints.clone(), last_version })
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
