//! Sizes and bounds of the partition layer.

use base::ByteSize;

/// Settings of the partition layer of one process. More than twelve fields, because tests and configurations
/// name each of them alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSettings {
    /// A memory table of this many bytes is frozen and written to a checkpoint.
    pub memory_table_size_bytes: u64,
    /// Bytes that memory tables of all ranges may take together, those that wait for their checkpoints
    /// included. From half of it on the largest are written to checkpoints early; at the whole of it writers
    /// wait.
    pub memory_tables_size_bytes_max: u64,
    /// Groups of the ranges' logs that a load should have to read for them; [`u64::MAX`], as on a disk:
    /// however many there are. From half of it on, or an eighth of that in one range, tables with the most
    /// groups are written to checkpoints early. Writers don't wait for it.
    pub log_groups_max: u64,
    /// Bytes that cached row blocks, index blocks and filters of all ranges may take together.
    pub cache_size_bytes_max: u64,
    /// So many checkpoints of similar size are merged into one. More of them are rewritten less often and
    /// asked more.
    pub compaction_count_min: usize,
    /// A compaction of several times as many bytes is done in parts of at least this many.
    pub compaction_part_size_bytes: u64,
    /// Bytes of rows, keys included, that one operation may read from checkpoints;
    /// [`OPERATION_READ_SIZE_BYTES_MAX`] but in tests.
    pub operation_read_size_bytes_max: u64,
    /// Points that one operation reads are looked up together if there are so many:
    /// 8 but in tests.
    pub points_together_min: usize,
    /// Rows of one part of a checkpoint, which has an index and a filter of its own, at most; 65,536 if
    /// `None`, as it is but in tests.
    pub part_row_count_max: Option<usize>,
    /// A range with more bytes of checkpoints than this is split.
    pub range_size_bytes_max: u64,
    /// Ranges of all tables together; then none is split any more.
    pub range_count_max: usize,
    /// A range that gets this many requests a second for a minute is split, if its keys let it.
    pub hot_requests_per_second: u64,
    /// Neighbours that get fewer requests a second than this for five minutes are merged, if they are small.
    pub cold_requests_per_second: u64,
    /// One request in this many is noted in the sketches of ranges' heat; 0: none is.
    pub heat_sample_one_in: u64,
    /// Marks of deleted containers that each walk over rows, and the copy of the partition map, have in
    /// memory at a time; there may be any number of them.
    pub marks_at_hand_max: usize,
    /// A fault that tests plant to prove that they notice it. Never set otherwise.
    pub planted_fault: Option<PlantedFault>,
}

/// Faults that tests plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// After a split or merge, rows of the first partition name are taken for a neighbour's.
    WrongHeirRange,
    /// A replay of the log leaves out one record.
    DroppedLogRecord,
    /// On a full disk a part of a checkpoint takes space, and gives none back before all of it has moved.
    FruitlessReclaim,
    /// Flushes and compactions drop every tombstone, whatever older checkpoints have.
    DroppedTombstones,
    /// No compaction is due because of tombstones: they stay until sizes or a full disk ask for it.
    StuckTombstones,
    /// Marks of deleted containers go in the next round, although ranges hold rows of them.
    HastyMarks,
    /// Ranges answer although their lease has ended.
    IgnoredLease,
    /// The cache drops the blocks of extents that a removed checkpoint listed, although others name them.
    EvictedNamedBlocks,
}

/// Why settings can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// Too little memory to work with.
    #[error("a memory budget of {} is too small: at least {}", ByteSize(*given), ByteSize(*least))]
    BudgetTooSmall {
        /// What was asked for.
        given: u64,
        /// What it takes.
        least: u64,
    },
    /// Not a share that leaves something for both.
    #[error(
        "a cache share of {given} percent is not between {CACHE_SHARE_PERCENT_MIN} and {CACHE_SHARE_PERCENT_MAX}"
    )]
    CacheShare {
        /// What was asked for.
        given: u64,
    },
    /// Memory tables so large that one range alone would make the others wait.
    #[error(
        "memory tables of {} are too large for {} of all of them: a quarter at most",
        ByteSize(*table),
        ByteSize(*all)
    )]
    TableTooLarge {
        /// Size of one.
        table: u64,
        /// Bytes for all.
        all: u64,
    },
    /// A size of ranges that would split them all the time.
    #[error(
        "a range size of {} is too small: at least {}, the size of a memory table",
        ByteSize(*given),
        ByteSize(*least)
    )]
    RangeTooSmall {
        /// What was asked for.
        given: u64,
        /// What it takes.
        least: u64,
    },
    /// Fewer ranges than there are tables.
    #[error("{given} ranges are too few: at least {least}, one for each object table")]
    TooFewRanges {
        /// What was asked for.
        given: u64,
        /// What it takes.
        least: u64,
    },
}

/// Frozen memory tables that may wait for their checkpoint; then writers wait.
pub(crate) const FROZEN_TABLE_COUNT_MAX: usize = 2;
/// Bytes of rows, keys included, that one operation may read from checkpoints: they are in memory together.
/// It is five times what a group of a hundred of the largest entities reads, and eight times what one
/// operation may change.
pub const OPERATION_READ_SIZE_BYTES_MAX: u64 = 512 << 20;

/// Points that one operation reads are looked up together if there are so many, as in an entity group. For
/// fewer it saves nothing.
pub(crate) const POINTS_TOGETHER_MIN: usize = 8;
/// One request in this many is noted in the sketches of ranges' heat, unless another number is asked for.
pub const HEAT_SAMPLE_ONE_IN: u64 = 64;
/// The least memory budget that can be asked for.
pub const MEMORY_BUDGET_SIZE_BYTES_MIN: u64 = 64 << 20;
/// The memory budget unless another is asked for.
pub const MEMORY_BUDGET_SIZE_BYTES: u64 = 1 << 30;
/// The cache's share of it at least, unless another is asked for.
const CACHE_SHARE_PERCENT: u64 = 50;
/// What memory tables get at most unless the cache's share is set. All of it may have to be read from the log
/// again at a start after a crash.
const UNCHOSEN_MEMORY_TABLES_SIZE_BYTES_MAX: u64 = 512 << 20;
const CACHE_SHARE_PERCENT_MIN: u64 = 10;
const CACHE_SHARE_PERCENT_MAX: u64 = 90;
/// A memory table is no larger, however large the budget is: larger ones cost more to load than they save.
const MEMORY_TABLE_SIZE_BYTES_MAX: u64 = 32 << 20;
/// A memory table's part of the budget for all: with several ranges, several take changes and several wait.
const MEMORY_TABLE_DIVISOR: u64 = 4;

/// Where a load reads logs from far away, a group of a log counts as so many bytes at least: it costs a
/// request.
const LOG_GROUP_SIZE_BYTES: u64 = 64 << 10;

/// Bytes of blob data on their way to the disk, as a part of the memory budget. The least is room for a piece
/// of each of several uploads.
const IN_FLIGHT_OF_MEMORY: u64 = 16;
const IN_FLIGHT_SIZE_BYTES_MIN: u64 = 16 << 20;
const IN_FLIGHT_SIZE_BYTES_MAX: u64 = 64 << 20;

impl Default for PartitionSettings {
    fn default() -> Self {
        PartitionSettings {
            memory_table_size_bytes: MEMORY_TABLE_SIZE_BYTES_MAX,
            memory_tables_size_bytes_max: 512 << 20,
            log_groups_max: u64::MAX,
            cache_size_bytes_max: 512 << 20,
            compaction_count_min: 10,
            compaction_part_size_bytes: 64 << 20,
            operation_read_size_bytes_max: OPERATION_READ_SIZE_BYTES_MAX,
            points_together_min: POINTS_TOGETHER_MIN,
            part_row_count_max: None,
            range_size_bytes_max: 4 << 30,
            range_count_max: 32,
            hot_requests_per_second: 50_000,
            cold_requests_per_second: 10,
            heat_sample_one_in: HEAT_SAMPLE_ONE_IN,
            marks_at_hand_max: 10_000,
            planted_fault: None,
        }
    }
}

impl PartitionSettings {
    /// These settings with memory tables and cache that take `budget_bytes` together, the cache its share of
    /// it. Without a share the cache has half, or all but what memory tables get at most.
    pub fn with_memory_budget(
        self,
        budget_bytes: u64,
        cache_share_percent: Option<u64>,
    ) -> Result<Self, SettingError> {
        if budget_bytes < MEMORY_BUDGET_SIZE_BYTES_MIN {
            let least = MEMORY_BUDGET_SIZE_BYTES_MIN;
            return Err(SettingError::BudgetTooSmall { given: budget_bytes, least });
        }
        let cache_size_bytes_max = match cache_share_percent {
            Some(given) if !(CACHE_SHARE_PERCENT_MIN..=CACHE_SHARE_PERCENT_MAX).contains(&given) => {
                return Err(SettingError::CacheShare { given });
            }
            Some(given) => budget_bytes / 100 * given,
            None => {
                let rest = budget_bytes.saturating_sub(UNCHOSEN_MEMORY_TABLES_SIZE_BYTES_MAX);
                rest.max(budget_bytes / 100 * CACHE_SHARE_PERCENT)
            }
        };
        let memory_tables_size_bytes_max = budget_bytes - cache_size_bytes_max;
        let memory_table_size_bytes =
            (memory_tables_size_bytes_max / MEMORY_TABLE_DIVISOR).min(MEMORY_TABLE_SIZE_BYTES_MAX);
        Ok(PartitionSettings {
            memory_table_size_bytes,
            memory_tables_size_bytes_max,
            cache_size_bytes_max,
            ..self
        })
    }

    /// These settings with memory tables whose flush takes at most so many bytes: what a full disk keeps back
    /// for it.
    pub fn with_flushes_of(self, size_bytes_max: u64) -> Self {
        let memory_table_size_bytes = self.memory_table_size_bytes.min(size_bytes_max);
        PartitionSettings { memory_table_size_bytes, ..self }
    }

    /// These settings with memory tables that take at most so many bytes together, so that whoever loads the
    /// ranges after a crash reads no more than that from logs; tables are flushed early if their groups would
    /// have that size at 64 KiB each. What is left of the budget is the cache's.
    pub fn with_replay_of(self, size_bytes_max: u64) -> Self {
        let memory_tables_size_bytes_max = self.memory_tables_size_bytes_max.min(size_bytes_max);
        let left_bytes = self.memory_tables_size_bytes_max - memory_tables_size_bytes_max;
        PartitionSettings {
            memory_tables_size_bytes_max,
            log_groups_max: (size_bytes_max / LOG_GROUP_SIZE_BYTES).max(1),
            memory_table_size_bytes: self
                .memory_table_size_bytes
                .min(memory_tables_size_bytes_max / MEMORY_TABLE_DIVISOR),
            cache_size_bytes_max: self.cache_size_bytes_max + left_bytes,
            ..self
        }
    }

    /// What memory tables and the cache may take together: what bounds of other memory are parts of.
    pub fn memory_budget_size_bytes(&self) -> u64 {
        self.memory_tables_size_bytes_max + self.cache_size_bytes_max
    }

    /// Bytes of blob data that may be on their way to the disk, uploads of all clients together.
    pub(crate) fn in_flight_size_bytes_max(&self) -> u64 {
        (self.memory_budget_size_bytes() / IN_FLIGHT_OF_MEMORY)
            .clamp(IN_FLIGHT_SIZE_BYTES_MIN, IN_FLIGHT_SIZE_BYTES_MAX)
    }

    /// What is wrong with the settings, if anything.
    pub fn check(&self) -> Result<(), SettingError> {
        let (table, all) = (self.memory_table_size_bytes, self.memory_tables_size_bytes_max);
        if table > all / MEMORY_TABLE_DIVISOR {
            return Err(SettingError::TableTooLarge { table, all });
        }
        let least = crate::operation::OBJECT_TABLES.len() as u64 + 1;
        if (self.range_count_max as u64) < least {
            return Err(SettingError::TooFewRanges { given: self.range_count_max as u64, least });
        }
        Ok(())
    }

    /// As [`Self::check`], for settings that users choose.
    pub fn check_chosen(&self) -> Result<(), SettingError> {
        let (given, least) = (self.range_size_bytes_max, self.memory_table_size_bytes);
        if given < least {
            return Err(SettingError::RangeTooSmall { given, least });
        }
        self.check()
    }

    /// Small sizes, so that tests checkpoint and merge often.
    pub fn tiny() -> Self {
        PartitionSettings {
            memory_table_size_bytes: 24 << 10,
            memory_tables_size_bytes_max: 96 << 10,
            cache_size_bytes_max: 64 << 10,
            compaction_count_min: 4,
            compaction_part_size_bytes: 16 << 10,
            points_together_min: 2,
            range_size_bytes_max: 2 << 10,
            range_count_max: 8,
            marks_at_hand_max: 16,
            ..PartitionSettings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a large budget a take-over would read all of its memory tables from logs again.
    #[test]
    fn what_a_replay_reads_is_bounded_whatever_the_budget_is() {
        let of = |gib: u64, share| PartitionSettings::default().with_memory_budget(gib << 30, share).unwrap();
        for (settings, replay_mib, tables_mib, table_mib) in [
            (of(1, None), 512, 512, 32),
            (of(16, Some(50)), 512, 512, 32),
            (of(16, Some(50)), 32, 32, 8),
            (of(16, Some(50)), 64 << 10, 8 << 10, 32),
        ] {
            let bounded = settings.clone().with_replay_of(replay_mib << 20);
            assert!(bounded.memory_tables_size_bytes_max.abs_diff(tables_mib << 20) < 100, "{bounded:?}");
            assert_eq!(bounded.memory_table_size_bytes, table_mib << 20);
            assert_eq!(bounded.log_groups_max, replay_mib << 4);
            assert_eq!(bounded.memory_budget_size_bytes(), settings.memory_budget_size_bytes());
            assert_eq!(bounded.check_chosen(), Ok(()));
        }
    }

    #[test]
    fn a_budget_is_parted_between_tables_and_cache() {
        let settings = PartitionSettings::default().with_memory_budget(256 << 20, Some(50)).unwrap();
        assert_eq!(settings.cache_size_bytes_max + settings.memory_tables_size_bytes_max, 256 << 20);
        assert!(settings.cache_size_bytes_max.abs_diff(128 << 20) < 100);
        assert!(settings.memory_table_size_bytes.abs_diff(32 << 20) < 100);
        assert_eq!(settings.check_chosen(), Ok(()));
        let large = PartitionSettings::default().with_memory_budget(64 << 30, Some(90)).unwrap();
        assert_eq!(large.memory_table_size_bytes, MEMORY_TABLE_SIZE_BYTES_MAX);
        let asked = PartitionSettings::default()
            .with_memory_budget(MEMORY_BUDGET_SIZE_BYTES, Some(CACHE_SHARE_PERCENT));
        assert_eq!(asked.map(|settings| settings.check_chosen()), Ok(Ok(())));
        let unchosen = PartitionSettings::default().with_memory_budget(4 << 30, None).unwrap();
        assert_eq!(unchosen.memory_tables_size_bytes_max, 512 << 20);
        assert_eq!(unchosen.cache_size_bytes_max, 3584 << 20);
        let small = PartitionSettings::default().with_memory_budget(256 << 20, None);
        assert_eq!(small, Ok(settings));
        for (budget_mib, in_flight_mib) in [(64, 16), (512, 32), (1024, 64), (64 << 10, 64)] {
            let settings = PartitionSettings::default().with_memory_budget(budget_mib << 20, None).unwrap();
            assert_eq!(settings.memory_budget_size_bytes(), budget_mib << 20);
            assert_eq!(
                settings.in_flight_size_bytes_max().div_ceil(1 << 20),
                in_flight_mib,
                "{budget_mib} MiB"
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let settings = PartitionSettings::default;
        assert!(settings().with_memory_budget(1 << 20, Some(50)).is_err());
        assert!(settings().with_memory_budget(1 << 30, Some(5)).is_err());
        assert!(settings().with_memory_budget(1 << 30, Some(95)).is_err());
        assert!(PartitionSettings { memory_tables_size_bytes_max: 1 << 20, ..settings() }.check().is_err());
        assert!(PartitionSettings { range_count_max: 2, ..settings() }.check().is_err());
        assert!(PartitionSettings { range_size_bytes_max: 1, ..settings() }.check_chosen().is_err());
        assert_eq!(settings().check_chosen(), Ok(()));
        assert_eq!(PartitionSettings::tiny().check(), Ok(()));
    }
}
