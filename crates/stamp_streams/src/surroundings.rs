//! What a process of a stamp is given: stores, clock, chance, tasks, settings.
//!
//! Both clocks of [`base::Clock`] are used. What is asked of them: the monotonic one goes on while the
//! machine is suspended (`CLOCK_BOOTTIME`), and within a lease time it differs from those of other processes
//! by less than the margin. The wall clock may jump.

use crate::cache::block_cache::BlockCache;
use crate::extents::read_ahead::ReadAhead;
use crate::settings::{BACK_OFF_MAX, BACK_OFF_MIN, StampSettings};
use crate::stores::key_values::KeyValues;
use crate::stores::object_store::ObjectStore;
use crate::stores::store_error::StoreError;
use base::{Clock, Random, Spawner};
use futures_util::future::{Either, select};
use stamp::{Incarnation, Instants};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How long the object store has to answer a process that could not read or write, before that takes it for
/// cut off: a second at least, and this part of what a try may take. Such an answer has a few bytes, a try
/// up to 64 MiB of parts beside each other.
const STORE_ANSWERS_IN_MIN: Duration = Duration::from_secs(1);
const STORE_ANSWERS_IN_OF_TRY: u32 = 5;

pub(crate) fn store_answers_in(object_try_for: Duration) -> Duration {
    STORE_ANSWERS_IN_MIN.max(object_try_for / STORE_ANSWERS_IN_OF_TRY)
}

/// What a process of a stamp is given. Cheap to clone.
#[derive(Clone)]
pub struct Surroundings {
    /// Wall and monotonic time.
    pub clock: Arc<dyn Clock>,
    /// Randomness, for names and waits.
    pub random: Arc<dyn Random>,
    /// Where tasks are started.
    pub spawner: Arc<dyn Spawner>,
    /// All bytes.
    pub objects: Arc<dyn ObjectStore>,
    /// Blocks that were read before, if any are kept.
    pub cache: Option<Arc<BlockCache>>,
    /// Parts that were read before the range was taken, if any are kept.
    pub ahead: Arc<ReadAhead>,
    /// All metadata.
    pub keys: Arc<dyn KeyValues>,
    /// What it is set to.
    pub settings: Arc<StampSettings>,
}

impl Surroundings {
    /// Now, by both clocks.
    pub(crate) fn instants(&self) -> Instants {
        Instants { boot: self.clock.monotonic(), wall: self.clock.now() }
    }

    /// The outcome of one try of a request to the object store, or none if it takes too long.
    pub(crate) async fn try_object<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        self.within(self.settings.object_try_for, request).await
    }

    /// Whether the object store answers this process within so long, whatever it answers for one object.
    pub async fn reaches_store(&self, patience: Duration) -> bool {
        let name = format!("{}/reached", self.settings.stamp);
        let read = self.objects.read(&name, 0, 1);
        let answer = self.within(patience, read).await;
        matches!(answer, Some(Ok(_) | Err(StoreError::NotThere)))
    }

    /// The outcome of one try of a request to the metadata store, or none if it takes too long.
    pub(crate) async fn try_key<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        self.within(self.settings.key_try_for, request).await
    }

    /// The outcome of a request, or none if it takes longer than this.
    pub(crate) async fn within<T>(&self, patience: Duration, request: impl Future<Output = T>) -> Option<T> {
        match select(pin!(request), self.clock.sleep(patience)).await {
            Either::Left((outcome, _)) => Some(outcome),
            Either::Right(_) => None,
        }
    }

    /// 128 random bits.
    pub(crate) fn draw_wide(&self) -> u128 {
        (u128::from(self.random.next_u64()) << 64) | u128::from(self.random.next_u64())
    }

    /// An incarnation that was never used.
    pub(crate) fn draw_incarnation(&self) -> Incarnation {
        Incarnation(self.draw_wide())
    }

    /// The waits between tries of one thing.
    pub(crate) fn back_off(&self) -> BackOff<'_> {
        BackOff { surroundings: self, next: BACK_OFF_MIN }
    }
}

/// Waits that double, from [`BACK_OFF_MIN`] to [`BACK_OFF_MAX`], each shortened by chance by up to a half.
pub(crate) struct BackOff<'a> {
    surroundings: &'a Surroundings,
    next: Duration,
}

impl BackOff<'_> {
    /// Waits before the next try.
    pub(crate) async fn wait(&mut self) {
        let surroundings = self.surroundings;
        let half_ms = (self.next.as_millis() as u64 / 2).max(1);
        let wait = self.next - Duration::from_millis(surroundings.random.next_u64() % half_ms);
        self.next = (self.next * 2).min(BACK_OFF_MAX);
        surroundings.clock.sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a slow line, which has a longer time-out, a probe of a second took the store for cut off.
    #[test]
    fn a_slow_store_has_longer_for_a_probe() {
        for (try_for_ms, probe_ms) in [(1000, 1000), (5000, 1000), (20_000, 4000)] {
            let probe = store_answers_in(Duration::from_millis(try_for_ms));
            assert_eq!(probe, Duration::from_millis(probe_ms));
        }
    }
}
