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
use base::{Clock, Random, Spawner};
use futures_util::future::{Either, select};
use stamp::{Incarnation, Instants};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

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
