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

/// A flush of a table that is smaller than one part in so many of a full one says little of how fast flushes
/// are: most of what it takes is for syncs.
const MEASURED_TABLE_DIVISOR: u64 = 4;

/// Writers are slowed by how far the flush is, until it has ended, whatever becomes of it.
struct UnderWay<'a> {
    core: &'a RangeTree,
    began_at: Duration,
    size_bytes: u64,
}

impl<'a> UnderWay<'a> {
    fn begin(core: &'a RangeTree, size_bytes: u64) -> Self {
        let began_at = core.shared.clock.monotonic();
        core.gate.flush_began_us.store((began_at.as_micros() as u64).max(1), Ordering::Relaxed);
        UnderWay { core, began_at, size_bytes }
    }

    /// The table has left memory: what else is to be done is not part of how far the next one is.
    fn note_written(&self) {
        self.core.gate.flush_began_us.store(0, Ordering::Relaxed);
    }

    /// It took so long.
    fn note_done(&self) {
        let shared = &self.core.shared;
        if self.size_bytes >= shared.settings.memory_table_size_bytes / MEASURED_TABLE_DIVISOR {
            let took_for = shared.clock.monotonic().saturating_sub(self.began_at);
            shared.memory.pace.note_flush(self.size_bytes, took_for);
            let (slowed, slowed_for) = shared.memory.pace.slowed();
            tracing::debug!(
                size_bytes = self.size_bytes,
                took_ms = took_for.as_millis() as u64,
                flush_bytes_per_second = shared.memory.pace.flush_bytes_per_second(),
                slowed,
                slowed_ms = slowed_for.as_millis() as u64,
                waits = shared.memory.statistics().waits,
                "how fast flushes are, and how writers fare"
            );
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.note_written();
    }
}

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
        let began_at = self.core.shared.clock.monotonic();
        let under_way = UnderWay::begin(&self.core, frozen.memory.size_bytes());
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
        under_way.note_written();
        let metrics = &self.core.shared.metrics;
        metrics.flush.record_duration(self.core.shared.clock.monotonic().saturating_sub(began_at));
        metrics.flushed_bytes.add(frozen.memory.size_bytes());
        if let Some(start) = metadata.log_start {
            self.core.trim(&self.core.names.log, start.extent).await;
        }
        drop(metadata);
        tracing::debug!(
            table = self.core.table.name(),
            version = frozen.last_version.0,
            "memory table is flushed"
        );
        under_way.note_done();
        drop(under_way);
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
