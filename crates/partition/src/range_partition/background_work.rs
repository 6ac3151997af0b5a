//! What is done for a range in the background, handed on to the part that does it.

use super::partition::RangePartition;
use crate::background::range_work::{Collected, Ends, Flush, RangeWork};
use crate::background::retries::RangeName;
use crate::blob_data::choose_emptied::Pace;
use crate::error::PartitionError;
use crate::memory::choose_flush::RangeMemory;
use crate::memory::memory_budget::MemoryBudget;
use base::BoxFuture;
use std::sync::Arc;

impl RangeWork for RangePartition {
    fn name(&self) -> RangeName {
        self.core.name()
    }

    fn refuse(&self) {
        self.pipeline.refuse();
    }

    fn is_scarce(&self) -> bool {
        self.core.is_scarce()
    }

    fn is_tight(&self) -> BoxFuture<'_, bool> {
        Box::pin(self.core.is_tight())
    }

    fn became_scarce(&self) -> BoxFuture<'static, ()> {
        self.core.became_scarce()
    }

    fn budget(&self) -> &Arc<MemoryBudget> {
        self.core.budget()
    }

    fn memory(&self) -> RangeMemory {
        self.core.memory()
    }

    fn freeze_active(&self) {
        self.core.freeze_active();
    }

    fn flush(&self) -> BoxFuture<'_, Result<Flush, PartitionError>> {
        Box::pin(self.flusher.flush())
    }

    fn free_space(&self) -> BoxFuture<'_, Result<(), PartitionError>> {
        Box::pin(self.flusher.free_space())
    }

    fn tell_waiting_writers(&self) {
        self.core.tell_waiting_writers();
    }

    fn compact<'a>(&'a self, ends: Ends<'a>) -> BoxFuture<'a, Result<u64, PartitionError>> {
        Box::pin(self.compactor.compact(ends))
    }

    fn checkpoints_to_compact(&self) -> usize {
        self.compactor.checkpoints_to_compact()
    }

    fn has_failed_compaction(&self) -> bool {
        self.compactor.has_failed_compaction()
    }

    fn waits_until_idle(&self) -> bool {
        self.compactor.waits_until_idle()
    }

    fn compact_when_idle<'a>(&'a self, ends: Ends<'a>) -> BoxFuture<'a, bool> {
        Box::pin(self.compactor.compact_when_idle(ends))
    }

    fn data_activity(&self) -> Option<u64> {
        self.data.as_ref().map(|data| data.activity())
    }

    fn kept_back_bytes(&self) -> u64 {
        self.core.shared.streams.kept_back_bytes()
    }

    fn is_worth_collecting(&self, pace: Pace) -> bool {
        self.collector.as_ref().is_some_and(|collector| collector.is_worth_collecting(pace))
    }

    fn collect_data<'a>(
        self: Arc<Self>,
        pace: Pace,
        ends: Ends<'a>,
        is_disturbed: Ends<'a>,
        collected: &'a mut Collected,
    ) -> BoxFuture<'a, Result<(), PartitionError>> {
        Box::pin(
            async move { self.collector()?.collect_data(&self, pace, ends, is_disturbed, collected).await },
        )
    }

    fn delete_streams(&self) -> BoxFuture<'_, Result<(), PartitionError>> {
        Box::pin(self.core.delete_streams())
    }
}
