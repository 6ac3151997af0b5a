//! Sizes and bounds of the partition layer.

/// Settings of the partition layer of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSettings {
    /// A memory table of this many bytes is frozen and written to a checkpoint.
    pub memory_table_size_bytes: u64,
    /// Bytes that cached row blocks, index blocks and filters of all ranges may take together.
    pub cache_size_bytes_max: u64,
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
            ..PartitionSettings::default()
        }
    }
}
