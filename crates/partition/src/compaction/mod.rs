//! Which checkpoints are compacted, reclaimed or rewritten, and when: pure choices over what they hold.

pub(crate) mod choose_compaction;
pub(crate) mod choose_part;
pub(crate) mod choose_reclaim;
pub(crate) mod choose_rewrite;
pub(crate) mod choose_shared_overflow;
pub(crate) mod choose_tombstone_compaction;
pub(crate) mod choose_victims;
pub(crate) mod counts;
pub(crate) mod idle;
#[cfg(test)]
mod workloads;
