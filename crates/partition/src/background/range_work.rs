//! Background work as the maintenance sees it: what a range offers to have done, when, and how that ended.

use crate::background::retries::RangeName;
use crate::blob_data::choose_emptied::Pace;
use crate::error::PartitionError;
use crate::memory::choose_flush::RangeMemory;
use crate::memory::memory_budget::MemoryBudget;
use base::BoxFuture;
use std::sync::Arc;

/// What a flush found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// No frozen table waits, or it has to.
    Nothing,
    /// The oldest frozen table holds changes that are not durable yet: try again shortly.
    NotYet,
    /// A frozen table became a checkpoint.
    Done,
}

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Extents that left the stream.
    pub extents: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// Bytes that were copied for it.
    pub copied_bytes: u64,
}

/// Asked while work is under way: whether it shall end without a result.
pub(crate) type Ends<'a> = &'a (dyn Fn() -> bool + Sync);

/// A range, as far as work is done for it in the background. Each part of it bounds what it does at a time.
pub(crate) trait RangeWork: Send + Sync {
    /// Table and id.
    fn name(&self) -> RangeName;

    /// Takes no further operations; it is kept until those under way have ended.
    fn refuse(&self);

    /// Whether its disk is full.
    fn is_scarce(&self) -> bool;

    /// Whether its disk will soon be full.
    fn is_tight(&self) -> BoxFuture<'_, bool>;

    /// Returns when its disk is full. It does not keep the range.
    fn became_scarce(&self) -> BoxFuture<'static, ()>;

    /// The budget that its memory tables count against.
    fn budget(&self) -> &Arc<MemoryBudget>;

    /// What it holds in memory.
    fn memory(&self) -> RangeMemory;

    /// Freezes the table that takes changes, unless it is empty.
    fn freeze_active(&self);

    /// Turns the oldest frozen memory table into a checkpoint.
    fn flush(&self) -> BoxFuture<'_, Result<Flush, PartitionError>>;

    /// Takes one step that gives space back, if the disk is full.
    fn free_space(&self) -> BoxFuture<'_, Result<(), PartitionError>>;

    /// Writers that wait for a flush look again why there is none.
    fn tell_waiting_writers(&self);

    /// Compacts the checkpoints that are worth it. Returns how many compactions that took.
    fn compact<'a>(&'a self, ends: Ends<'a>) -> BoxFuture<'a, Result<u64, PartitionError>>;

    /// How many checkpoints there are if some of them are to be compacted, or are being compacted; else 0.
    fn checkpoints_to_compact(&self) -> usize;

    /// Whether checkpoints wait for a compaction that fails because something does not read.
    fn has_failed_compaction(&self) -> bool;

    /// Whether there is something to compact when it is idle.
    fn waits_until_idle(&self) -> bool;

    /// Compacts similar checkpoints, if nothing more urgent is to be done. Returns whether it has.
    fn compact_when_idle<'a>(&'a self, ends: Ends<'a>) -> BoxFuture<'a, bool>;

    /// How often others wrote or deleted blob data here since the range was opened; `None`: the table has
    /// none.
    fn data_activity(&self) -> Option<u64>;

    /// What the server keeps back of the disk.
    fn kept_back_bytes(&self) -> u64;

    /// Whether a collection may free a fair part of what is stored.
    fn is_worth_collecting(&self, pace: Pace) -> bool;

    /// Frees the space of blob data that no row names. It copies no further blob once it is disturbed.
    fn collect_data<'a>(
        self: Arc<Self>,
        pace: Pace,
        ends: Ends<'a>,
        is_disturbed: Ends<'a>,
        collected: &'a mut Collected,
    ) -> BoxFuture<'a, Result<(), PartitionError>>;

    /// Removes all its streams: nothing names it any more and nobody reads it.
    fn delete_streams(&self) -> BoxFuture<'_, Result<(), PartitionError>>;
}
