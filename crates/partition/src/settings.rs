//! Sizes and bounds of the partition layer.

/// Settings of the partition layer of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSettings {
    /// A memory table of this many bytes is frozen and written to a checkpoint.
    pub memory_table_size_bytes: u64,
    /// Bytes that cached row blocks, index blocks and filters of all ranges may take together.
    pub cache_size_bytes_max: u64,
    /// A range with more bytes of checkpoints than this is split.
    pub range_size_bytes_max: u64,
    /// Ranges of all tables together; then none is split any more. Each may have memory tables of its own.
    pub range_count_max: usize,
    /// A range that gets this many requests a second for a minute is split, if its keys let it.
    pub hot_requests_per_second: u64,
    /// Neighbours that get fewer requests a second than this for five minutes are merged, if they are small.
    pub cold_requests_per_second: u64,
    /// A fault that tests plant to prove that they notice it. Never set otherwise.
    pub planted_fault: Option<PlantedFault>,
}

/// Faults that tests plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// After a split or merge, rows of the first partition name are taken for a neighbour's.
    WrongHeirRange,
}

/// Frozen memory tables that may wait for their checkpoint; then writers wait.
pub(crate) const FROZEN_TABLE_COUNT_MAX: usize = 2;

impl Default for PartitionSettings {
    fn default() -> Self {
        PartitionSettings {
            memory_table_size_bytes: 32 << 20,
            cache_size_bytes_max: 512 << 20,
            range_size_bytes_max: 4 << 30,
            range_count_max: 32,
            hot_requests_per_second: 50_000,
            cold_requests_per_second: 10,
            planted_fault: None,
        }
    }
}

impl PartitionSettings {
    /// Small sizes, so that tests checkpoint and merge often.
    pub fn tiny() -> Self {
        PartitionSettings {
            memory_table_size_bytes: 24 << 10,
            cache_size_bytes_max: 64 << 10,
            range_size_bytes_max: 2 << 10,
            range_count_max: 8,
            ..PartitionSettings::default()
        }
    }
}
