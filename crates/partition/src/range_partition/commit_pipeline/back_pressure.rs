//! Back-pressure: writers of a range wait while frozen memory tables wait for their checkpoints.

use crate::error::PartitionError;
use crate::operation::ObjectTable;
use crate::range_partition::commit_pipeline::CommitPipeline;
use crate::range_partition::range_tree::Standing;
use crate::settings::FROZEN_TABLE_COUNT_MAX;
use futures_util::future::select;
use std::pin::pin;

impl CommitPipeline {
    /// Whether a writer must wait: its range's flushes lag, or those of all.
    fn lacks_room(&self) -> bool {
        self.core.tree.load().frozen.len() >= FROZEN_TABLE_COUNT_MAX || self.lacks_budget()
    }

    /// Whether the tables of all ranges together leave no room for more.
    fn lacks_budget(&self) -> bool {
        // The map decides hand-overs, which may be what the others wait for; it holds next to nothing.
        self.core.table != ObjectTable::PartitionMap && self.core.shared.memory.is_full()
    }

    /// Slows writers down while frozen memory tables wait for their checkpoints.
    pub(crate) async fn wait_for_room(&self) -> Result<(), PartitionError> {
        if !self.lacks_room() {
            return Ok(());
        }
        let memory = &self.core.shared.memory;
        let clock = &self.core.shared.clock;
        let began_at = clock.monotonic();
        memory.begin_wait();
        // In a box: else each request would have room for it.
        let outcome = Box::pin(self.wait_for_flush()).await;
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
