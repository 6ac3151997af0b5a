//! A worker: some of the clients of a step, on one thread.
//!
//! What always holds: a worker ends [`GRACE_FOR`] after the step at the latest, and what is under way then is
//! counted as unfinished; no request begins after the step's end.

use super::arrivals::Arrivals;
use super::place::{Place, Shared};
use super::stop::Stop;
use crate::measure::recorder::InFlight;
use crate::plan::Plan;
use crate::workload::chance::Chance;
use base::Clock;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use storage_client::{Settings, StorageAccount, Surroundings};

/// How long answers of a step that has ended are waited for.
pub(crate) const GRACE_FOR: Duration = Duration::from_secs(5);

/// Timers are no finer. A request may begin that much before it is due, so that it is not late.
const TIMER_STEP: Duration = Duration::from_millis(1);

/// What sets clients' draws of keys and of operations apart.
const OPERATION_CLIENTS_FROM: u64 = 1 << 32;

/// What a worker does.
pub(crate) struct WorkerTask {
    pub(crate) plan: Arc<Plan>,
    /// The name of the place.
    pub(crate) name: String,
    pub(crate) shared: Shared,
    /// Numbers of its clients.
    pub(crate) clients: Range<u64>,
    /// None under a closed loop.
    pub(crate) arrivals: Option<Arc<Arrivals>>,
    /// The step's end.
    pub(crate) until: Duration,
    pub(crate) stop: Stop,
}

impl WorkerTask {
    /// Runs to the end of the step.
    pub(crate) async fn run(self, surroundings: Surroundings) {
        let clock = surroundings.clock.clone();
        let settings = Settings {
            connections_max: (self.clients.end - self.clients.start) as usize,
            observer: Some(self.shared.recorder.clone()),
            ..self.plan.settings.clone()
        };
        let account = StorageAccount::new(self.plan.address.clone(), settings, surroundings);
        let place = Place::of(&account, self.plan.service, &self.name);
        let clients = self.clients.clone().map(|number| self.client(&place, number, &*clock));
        let mut clients: FuturesUnordered<_> = clients.collect();
        let ended = async { while clients.next().await.is_some() {} };
        let mut stop = self.stop.clone();
        let given_up = async {
            let left = self.until.saturating_sub(clock.monotonic());
            select(clock.sleep(left), pin!(stop.wait())).await;
            clock.sleep(GRACE_FOR).await;
        };
        // What has not ended is dropped.
        select(pin!(ended), pin!(given_up)).await;
    }

    async fn client(&self, place: &Place, number: u64, clock: &dyn Clock) {
        let mut caller = place.caller(&self.plan, &self.shared, number);
        let mut chance = Chance::of(self.plan.seed, OPERATION_CLIENTS_FROM + number);
        let mut stop = self.stop.clone();
        loop {
            let due = self.arrivals.as_ref().map(|arrivals| arrivals.take());
            if let Some(due) = due
                && !self.wait(due, clock, &mut stop).await
            {
                return;
            }
            let now = clock.monotonic();
            if now >= self.until || stop.is_set() {
                return;
            }
            if let Some(arrivals) = &self.arrivals {
                arrivals.begin();
            }
            let kind = self.plan.mix.draw(&mut chance);
            let from = due.map_or(now, |due| due.min(now));
            let in_flight = InFlight::begin(&self.shared.recorder, clock, kind, from);
            let outcome = caller.call(kind).await;
            in_flight.end(&outcome);
        }
    }

    /// Waits until a request is due; false if it is not due in this step, or the run is to stop.
    async fn wait(&self, due: Duration, clock: &dyn Clock, stop: &mut Stop) -> bool {
        if due >= self.until {
            return false;
        }
        let Some(left) = due.checked_sub(clock.monotonic()).filter(|left| *left > TIMER_STEP) else {
            return true;
        };
        matches!(select(clock.sleep(left - TIMER_STEP), pin!(stop.wait())).await, Either::Left(_))
    }
}

/// The clients of each worker: as evenly as they can be shared, and none without a client.
pub(crate) fn shares(clients: u64, workers: u64) -> Vec<Range<u64>> {
    let workers = workers.clamp(1, clients.max(1));
    (0..workers).map(|worker| clients * worker / workers..clients * (worker + 1) / workers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_shared_evenly() {
        assert_eq!(shares(64, 2), [0..32, 32..64]);
        assert_eq!(shares(5, 3), [0..1, 1..3, 3..5]);
        assert_eq!(shares(1, 8).len(), 1);
        assert!((1..100).all(|clients| shares(clients, 7).iter().all(|share| !share.is_empty())));
    }
}
