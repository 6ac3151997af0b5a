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

/// One range as operators see it, damaged ones included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeDetails {
    /// Its id, unique in the folder.
    pub id: u64,
    /// The first key it owns, in legible parts; `None`: it begins with the first of all.
    pub start: Option<String>,
    /// The first key behind it; `None`: it ends with the last of all.
    pub end: Option<String>,
    /// What requests for its keys get, if it can't be served.
    pub damage: Option<String>,
    /// What it holds and is asked for; `None`: it is not served.
    pub served: Option<ServedRange>,
}

/// What a range that is served holds and is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedRange {
    /// Its owner's epoch: it rises with each change of owner.
    pub epoch: u64,
    /// Bytes of its checkpoints, without rows of other ranges; `None`: a block of them does not read.
    pub size_bytes: Option<u64>,
    /// Bytes of its memory tables.
    pub memory_table_bytes: u64,
    /// Checkpoints that a read may have to ask.
    pub checkpoints: usize,
    /// Bytes of the checkpoints that are being compacted; 0: none are.
    pub compacting_bytes: u64,
    /// Requests since the range was opened.
    pub requests: u64,
    /// Requests a second in the last round of the partition manager, of 15 s.
    pub requests_per_second: u64,
    /// Percent of that round's requests whose keys lay beyond every key before them.
    pub at_end_percent: u64,
    /// How long decisions held its serial section since the range was opened.
    pub serial_section_held_for: Duration,
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
