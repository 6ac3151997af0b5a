//! Bounds of a fan-out.

use std::time::Duration;

/// Whether a fan-out may lack a shard's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// The first failure ends it.
    AllShards,
    /// What failed is beside the answers, with each shard's error.
    SomeShards,
}

/// How shards are queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanOutSettings {
    /// Shards that are queried at a time, at most.
    pub shards_at_once: usize,
    /// The longest wait for one shard's answer, or for one batch of it, with its connection.
    pub shard_for_max: Duration,
    /// Whether an answer may lack.
    pub needed: Needed,
}

impl Default for FanOutSettings {
    fn default() -> Self {
        FanOutSettings {
            shards_at_once: 128,
            shard_for_max: Duration::from_secs(30),
            needed: Needed::AllShards,
        }
    }
}
