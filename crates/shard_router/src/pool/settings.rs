//! Bounds of a pool.

use std::time::Duration;

/// How the connections of each shard are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Connections to one shard, at most.
    pub connections_max: usize,
    /// Operations that wait for one of them, at most; a further one fails at once.
    pub waiters_max: usize,
    /// The longest wait for one of them.
    pub wait_for_max: Duration,
    /// The longest wait until a new one is there, with its credentials.
    pub connect_for_max: Duration,
    /// The longest operation on one; a longer one is given up, and its connection closed.
    pub operation_for_max: Duration,
    /// How long one is kept without an operation.
    pub idle_for_max: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        PoolSettings {
            connections_max: 16,
            waiters_max: 1024,
            wait_for_max: Duration::from_secs(10),
            connect_for_max: Duration::from_secs(10),
            operation_for_max: Duration::from_secs(300),
            idle_for_max: Duration::from_secs(60),
        }
    }
}
