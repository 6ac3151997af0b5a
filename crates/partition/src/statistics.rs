//! Figures of the layer and of its ranges, for operators and tests.
//!
//! Why here: the facade returns them and the layers below it count them. What always holds: counts begin at
//! zero when the layer is opened, and never fall.

use crate::key::KeyRange;
use crate::memory::memory_budget::MemoryStatistics;
use crate::pause::Pause;
use crate::tree::block_cache::CacheStatistics;
use std::time::Duration;

/// What the layer has done in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionStatistics {
    /// Memory tables that became checkpoints.
    pub flushes: u64,
    /// Merges of several checkpoints into one.
    pub compactions: u64,
    /// Ranges that are damaged: requests for their keys fail.
    pub damaged_ranges: u64,
    /// Bytes of rows that merges wrote, those of merges that gave up included.
    pub compacted_bytes: u64,
    /// Ranges that were split.
    pub range_splits: u64,
    /// Pairs of ranges that became one.
    pub range_merges: u64,
    /// Splits of ranges that the partition manager chose because they were too large.
    pub size_splits: u64,
    /// Splits of ranges that the partition manager chose because they were asked for too much.
    pub heat_splits: u64,
    /// Merges of ranges that the partition manager chose because they were hardly asked for.
    pub cold_merges: u64,
    /// The longest time in which operations waited for a split or merge of their range, and for what.
    pub longest_pause: Pause,
    /// Memory tables, and writers that waited for them.
    pub memory: MemoryStatistics,
    /// The block cache.
    pub cache: CacheStatistics,
}

/// What one range is like at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeStatistics {
    /// The keys it owns.
    pub keys: KeyRange,
    /// Checkpoints that a read may have to ask.
    pub checkpoints: usize,
    /// Filters that a look-up of a missing row reads: one for each group of checkpoints, and one for each
    /// other checkpoint.
    pub filters: usize,
    /// How long decisions held its serial section since the range was opened.
    pub serial_section_held_for: Duration,
}
