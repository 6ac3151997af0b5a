//! Randomness under a seed: clock, tasks and disk of a simulated process draw from it. What always holds: the
//! same seed gives the same sequence.

use base::Random;
use base::random::splitmix64;
use parking_lot::Mutex;
use std::sync::Arc;

/// Seeded random bits, shared by all that hold a clone.
#[derive(Clone)]
pub struct SimRandom {
    state: Arc<Mutex<u64>>,
}

impl SimRandom {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        SimRandom { state: Arc::new(Mutex::new(seed)) }
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// True once in `one_in` calls on average; never for 0.
    pub fn one_in(&self, one_in: u64) -> bool {
        one_in != 0 && self.below(one_in) == 0
    }
}

impl Random for SimRandom {
    fn next_u64(&self) -> u64 {
        splitmix64(&mut self.state.lock())
    }
}
