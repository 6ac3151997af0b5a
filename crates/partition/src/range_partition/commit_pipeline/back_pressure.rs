//! Back-pressure: writers of a range are slowed as flushes and compactions lag, and wait while frozen memory
//! tables wait for their checkpoints.
//!
//! What always holds: nobody is slowed on a full disk, where what is written gives space back, nor a write of
//! the partition map, which hand-overs end with; a writer that was slowed is admitted only while there is
//! room.

use crate::error::PartitionError;
use crate::memory::choose_write_delay::{Pressure, choose_write_rate, flushed_bytes, has_debt};
use crate::memory::write_pace::Turn;
use crate::operation::ObjectTable;
use crate::range_partition::commit_pipeline::CommitPipeline;
use crate::range_partition::range_tree::Standing;
use crate::settings::FROZEN_TABLE_COUNT_MAX;
use crate::tree::Tree;
use futures_util::future::select;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// With as many frozen tables as may wait, writers go on until the table behind them is full up to this part,
/// while much is free: so far they have been slowed. On a disk that may soon be full they stop before,
/// because the reserve has no room for a third table's checkpoint.
const ACTIVE_PART_DIVISOR: u64 = 2;

impl CommitPipeline {
    /// Whether a writer must wait: its range's flushes lag, or those of all.
    fn lacks_room(&self) -> bool {
        let tree = self.core.tree.load();
        tree.frozen.len() >= FROZEN_TABLE_COUNT_MAX && self.has_full_tables(&tree) || self.lacks_budget()
    }

    /// Whether the range, with so many frozen tables that no more may wait, takes no further changes.
    fn has_full_tables(&self, tree: &Tree) -> bool {
        let table_size_bytes = self.core.shared.settings.memory_table_size_bytes;
        tree.active.size_bytes() >= table_size_bytes / ACTIVE_PART_DIVISOR
            || !self.may_be_slowed()
            || !self.core.shared.streams.is_ample()
            || tree.frozen.len() > FROZEN_TABLE_COUNT_MAX
    }

    /// Whether the tables of all ranges together leave no room for more.
    fn lacks_budget(&self) -> bool {
        // The map decides hand-overs, which may be what the others wait for; it holds next to nothing.
        self.core.table != ObjectTable::PartitionMap && self.core.shared.memory.is_full()
    }

    fn may_be_slowed(&self) -> bool {
        self.core.table != ObjectTable::PartitionMap && !self.core.is_scarce()
    }

    /// The rate, in bytes a second, at which writers are admitted; `None`: as they come.
    fn write_rate(&self) -> Option<u64> {
        let tree = self.core.tree.load();
        let shared = &self.core.shared;
        let compaction_count_min = shared.settings.compaction_count_min;
        let (used_bytes, used_bytes_max) = shared.memory.used_of_max();
        // Most of the time this is all that is looked at. What is in memory is at least half of the budget
        // before it presses.
        if tree.frozen.is_empty()
            && !has_debt(tree.checkpoints.len(), compaction_count_min)
            && used_bytes < used_bytes_max / 2
            || !self.may_be_slowed()
        {
            return None;
        }
        let flush_bytes_per_second = shared.memory.pace.flush_bytes_per_second();
        let passed_bytes = match self.core.gate.flush_began_us.load(Ordering::Relaxed) {
            0 => 0,
            began_us => {
                let began_for = shared.clock.monotonic().saturating_sub(Duration::from_micros(began_us));
                let flushed = tree.frozen.last().map_or(0, |oldest| oldest.memory.size_bytes());
                flushed_bytes(flushed, began_for, flush_bytes_per_second)
            }
        };
        let frozen_bytes: u64 = tree.frozen.iter().map(|frozen| frozen.memory.size_bytes()).sum();
        let pressure = Pressure {
            frozen_bytes: frozen_bytes.saturating_sub(passed_bytes),
            active_bytes: tree.active.size_bytes(),
            table_size_bytes: shared.settings.memory_table_size_bytes,
            used_bytes: used_bytes.saturating_sub(passed_bytes),
            used_bytes_max,
            checkpoint_count: tree.checkpoints.len(),
            compaction_count_min,
        };
        choose_write_rate(&pressure, flush_bytes_per_second)
    }

    /// Slows writers down while flushes lag, and stops them while there is no room for what they write. What
    /// collection writes is stopped only. A turn that a writer had is to be kept until it has written.
    pub(crate) async fn wait_for_room(
        &self,
        is_collection: bool,
    ) -> Result<Option<Turn<'_>>, PartitionError> {
        if self.lacks_room() {
            // In a box, and the others as well: else each request would have room for it.
            Box::pin(self.stop()).await?;
        }
        match self.write_rate().filter(|_| !is_collection) {
            Some(rate) => Box::pin(self.slow_down(rate)).await.map(Some),
            None => Ok(None),
        }
    }

    /// Waits for a turn, and then for room, if there is none any more.
    async fn slow_down(&self, bytes_per_second: u64) -> Result<Turn<'_>, PartitionError> {
        let shared = &self.core.shared;
        let turn =
            shared.memory.pace.take_turn(&self.core.gate.turns, shared.clock.monotonic(), bytes_per_second);
        if !turn.delay.is_zero() {
            shared.clock.sleep(turn.delay).await;
            if self.lacks_room() {
                self.stop().await?;
            }
        }
        Ok(turn)
    }

    /// Waits until there is room.
    async fn stop(&self) -> Result<(), PartitionError> {
        let memory = &self.core.shared.memory;
        let clock = &self.core.shared.clock;
        let began_at = clock.monotonic();
        memory.begin_wait();
        let outcome = self.wait_for_flush().await;
        memory.end_wait(clock.monotonic().saturating_sub(began_at));
        outcome
    }

    async fn wait_for_flush(&self) -> Result<(), PartitionError> {
        loop {
            let (flushed, freed) =
                (pin!(self.core.gate.flushed.notified()), pin!(self.core.shared.memory.freed()));
            if !self.lacks_room() {
                return Ok(());
            }
            match &self.core.serial.lock().standing {
                Standing::Open | Standing::HandingOver => {}
                // Nobody flushes it any more, and it is not dropped while a writer waits: other ranges have
                // room.
                Standing::Gone => return Ok(()),
                // It may hold changes that never become durable: nobody waits for those.
                Standing::Closed(error) => return Err(error.clone()),
            }
            if let Some(error) = self.core.shared.maintenance.trouble(self.core.name(), self.lacks_budget()) {
                return Err(error);
            }
            select(flushed, freed).await;
        }
    }
}
