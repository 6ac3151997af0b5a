//! A range's part of the memory budget: what it holds, freezing a table before it is full, letting writers
//! wait.

use super::{RangePartition, Standing};
use crate::error::PartitionError;
use crate::memory::choose_flush::RangeMemory;
use crate::memory::memory_budget::MemoryBudget;
use crate::operation::ObjectTable;
use crate::settings::FROZEN_TABLE_COUNT_MAX;
use futures_util::future::select;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl RangePartition {
    /// The budget that its tables count against.
    pub(crate) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.shared.memory
    }

    /// What it holds in memory; nothing that counts, if nobody will ever flush it.
    pub(crate) fn memory(&self) -> RangeMemory {
        let closed = matches!(self.serial.lock().standing, Standing::Closed(_));
        let tree = self.tree.load();
        if closed && self.visible() < self.serial.lock().last_version {
            // After a failed append a table may hold changes that never become durable, so it is never
            // flushed.
            tree.memory_tables().for_each(|memory| memory.release());
        }
        RangeMemory {
            active_bytes: tree.active.size_bytes(),
            may_freeze: !closed && tree.frozen.len() < FROZEN_TABLE_COUNT_MAX,
        }
    }

    /// Freezes the table that takes changes, unless it is empty.
    pub(crate) fn freeze_active(&self) {
        let serial = self.serial.lock();
        let tree = self.tree.load();
        if tree.active.size_bytes() > 0 {
            self.tree.store(Arc::new(tree.with_active_frozen(serial.last_version)));
            self.begins_table.store(true, Ordering::Release);
        }
    }

    /// Whether a writer must wait: its range's flushes lag, or those of all.
    fn lacks_room(&self) -> bool {
        self.tree.load().frozen.len() >= FROZEN_TABLE_COUNT_MAX || self.lacks_budget()
    }

    /// Whether the tables of all ranges together leave no room for more.
    fn lacks_budget(&self) -> bool {
        // The map decides hand-overs, which may be what the others wait for; it holds next to nothing.
        self.table != ObjectTable::PartitionMap && self.shared.memory.is_full()
    }

    /// Slows writers down while frozen memory tables wait for their checkpoints.
    pub(super) async fn wait_for_room(&self) -> Result<(), PartitionError> {
        if !self.lacks_room() {
            return Ok(());
        }
        let memory = &self.shared.memory;
        let clock = &self.shared.clock;
        let began_at = clock.monotonic();
        memory.begin_wait();
        // In a box: else each request would have room for it.
        let outcome = Box::pin(self.wait_for_flush()).await;
        memory.end_wait(clock.monotonic().saturating_sub(began_at));
        outcome
    }

    async fn wait_for_flush(&self) -> Result<(), PartitionError> {
        loop {
            let (flushed, freed) = (pin!(self.flushed.notified()), pin!(self.shared.memory.freed()));
            if !self.lacks_room() {
                return Ok(());
            }
            match &self.serial.lock().standing {
                Standing::Open | Standing::HandingOver => {}
                // Nobody flushes it any more, and it is not dropped while a writer waits: other ranges have
                // room.
                Standing::Gone => return Ok(()),
                // It may hold changes that never become durable: nobody waits for those.
                Standing::Closed(error) => return Err(error.clone()),
            }
            if let Some(error) = self.shared.maintenance.trouble(self.name(), self.lacks_budget()) {
                return Err(error);
            }
            select(flushed, freed).await;
        }
    }
}
