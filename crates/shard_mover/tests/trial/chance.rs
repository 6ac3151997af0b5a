//! Chance of a seed, for keys, changes and pauses.

use base::Random;
use base::random::{SPLITMIX64_STEP, splitmix64};
use std::sync::atomic::{AtomicU64, Ordering};

/// A generator without a lock: each number is a mix of a counter.
pub(crate) struct SeededRandom(AtomicU64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        SeededRandom(AtomicU64::new(seed))
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        splitmix64(&mut self.0.fetch_add(SPLITMIX64_STEP, Ordering::Relaxed))
    }
}
