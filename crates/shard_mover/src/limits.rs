//! Bounds of moves, plans and checks, with their units.

use std::time::Duration;

/// How long a storage account's signature for writes holds after the map was read, unless said otherwise.
pub const EXPIRES_AFTER: Duration = Duration::from_secs(15);
/// By how much the clocks of clients, movers and storage services differ at most, unless said otherwise.
pub const CLOCK_BOUND: Duration = Duration::from_secs(5);

/// How often in a row a step is tried that fails for a reason that may pass, unless said otherwise.
pub const ATTEMPTS_MAX: u32 = 5;
/// The wait after the first failure; later ones wait up to that times their number.
pub(crate) const WAIT_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Rows of a copy between two records of its progress, unless said otherwise: what is copied again after a
/// kill, at most.
pub const PROGRESS_EVERY_ROWS: u64 = 20_000;

/// Records that are requested at once.
pub(crate) const PAGE: usize = 100;
/// States of one move, at most: a log of more is damaged.
pub(crate) const STATES_MAX: usize = 64;
/// Characters of a reason that a record keeps.
pub(crate) const REASON_CHARS_MAX: usize = 1000;

/// States of a rebalance that are searched, at most, for the fewest moves.
pub const SEARCH_NODES_MAX: usize = 100_000;
/// Mappings that such a search looks at, at most: of a map of many it searches fewer states.
pub const SEARCH_MAPPINGS_MAX: usize = 20_000_000;

/// Shards that are measured at once, and mappings of one that are counted at once, at most.
pub(crate) const MEASURE_AT_ONCE_MAX: usize = 8;

/// Rows and bytes of all shards' batches together, at most, while a check reads all shards in order.
pub(crate) const MERGE_ROWS_MAX: usize = 1 << 17;
pub(crate) const MERGE_BYTES_MAX: usize = 64 << 20;
/// Pairs of a shard and a mapping that is elsewhere whose rows a check counts; rows of others are findings
/// only.
pub(crate) const FOREIGN_PLACES_MAX: usize = 100_000;
/// How often a check of orphans reads its tables at most, each time for a part of the parents.
pub(crate) const ORPHAN_PASSES_MAX: u128 = 4096;

/// Findings of a check of integrity that are kept; more are only counted.
pub const FINDINGS_MAX: usize = 1000;
/// Keys of parents that a check of orphans keeps in memory: 16 bytes each, and the tree's.
pub const PARENT_KEYS_MAX: usize = 1 << 20;
