//! Flushing: the oldest frozen memory table becomes a checkpoint, and the log behind it is trimmed.
//!
//! What always holds: only durable changes are flushed; the log is trimmed after the metadata stream names
//! the checkpoint that replaces it.

mod free_space;

use crate::background::range_work::Flush;
use crate::error::PartitionError;
use crate::range_partition::range_tree::shared_overflow::SharedOverflow;
use crate::range_partition::range_tree::write_checkpoint::{First, Room};
use crate::range_partition::range_tree::{RangeTree, Standing};
use crate::tree::merging_iterator::MergingIterator;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A flush looks again after this long whether another one of its range has ended.
const LOCK_POLL_AFTER: Duration = Duration::from_millis(1);

/// A flush whose table is not durable yet looks again after this long.
const DURABILITY_POLL_AFTER: Duration = Duration::from_millis(1);

/// Brings memory tables to checkpoints.
pub(crate) struct Flusher {
    pub(crate) core: Arc<RangeTree>,
}

impl Flusher {
    /// Turns the oldest frozen memory table into a checkpoint.
    pub(crate) async fn flush(&self) -> Result<Flush, PartitionError> {
        // Flushes of other ranges must not wait behind a hand-over that has the lock.
        let _flushing = loop {
            if let Ok(flushing) = self.core.gate.flushing.try_lock() {
                break flushing;
            }
            if self.core.gate.keeps_memory.load(Ordering::Acquire) {
                return Ok(Flush::Nothing);
            }
            self.core.shared.clock.sleep(LOCK_POLL_AFTER).await;
        };
        if self.core.gate.keeps_memory.load(Ordering::Acquire) {
            return Ok(Flush::Nothing);
        }
        let tree = self.core.tree();
        let Some(frozen) = tree.frozen.last().cloned() else { return Ok(Flush::Nothing) };
        if self.core.visible() < frozen.last_version {
            // After a failed append what is not durable never will be.
            let closed = matches!(self.core.serial.lock().standing, Standing::Closed(_));
            return Ok(if closed { Flush::Nothing } else { Flush::NotYet });
        }
        // Those that are there now are all that is older, whatever compactions make of them meanwhile.
        let tombstones = self.core.tombstones_over(tree.checkpoints.clone());
        let rows = MergingIterator::over_memory(frozen.memory.clone(), self.core.table.has_data());
        let nothing = SharedOverflow::default();
        let written = self
            .core
            .write_checkpoint(rows, &tombstones, First::Nothing, Room::AtMost(u64::MAX), &nothing)
            .await?;
        let checkpoint = self.core.open_written(&written, |_| Some(0)).await?;
        let mut metadata = self.core.metadata.lock().await;
        let mut next = metadata.clone();
        next.checkpoints.splice(0..0, checkpoint.iter().map(|checkpoint| checkpoint.reference.clone()));
        next.flushed_version = frozen.last_version;
        let log_start = self.core.log.positions.lock().start_after(frozen.last_version);
        next.log_start = log_start.or(metadata.log_start);
        self.core.adopt(&mut metadata, next, &written).await?;
        self.core.replace_tree(|tree| tree.with_flushed(checkpoint));
        if let Some(start) = metadata.log_start {
            self.core.trim(&self.core.names.log, start.extent).await;
        }
        drop(metadata);
        tracing::debug!(
            table = self.core.table.name(),
            version = frozen.last_version.0,
            "memory table is flushed"
        );
        self.core.gate.flushed.notify_waiters();
        Ok(Flush::Done)
    }

    /// Brings what is in memory now to checkpoints, beside the writers.
    pub(crate) async fn flush_all(&self) -> Result<(), PartitionError> {
        self.flush_frozen().await?;
        self.core.freeze_active();
        self.flush_frozen().await
    }

    async fn flush_frozen(&self) -> Result<(), PartitionError> {
        loop {
            match self.flush().await? {
                Flush::Nothing => return Ok(()),
                Flush::Done => {}
                Flush::NotYet => {
                    if let Standing::Closed(error) = &self.core.serial.lock().standing {
                        return Err(error.clone());
                    }
                    self.core.log.wake.notify_one();
                    self.core.shared.clock.sleep(DURABILITY_POLL_AFTER).await;
                }
            }
        }
    }
}
