//! What is between a host and a store: requests are slow, late, lost; answers too; links are cut.
//!
//! What always holds: what was sent may arrive long after its sender gave up, was paused or killed.

use parking_lot::Mutex;
use sim::SimRandom;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// The longest time that a request is on its way.
pub(crate) const LATE_MS_MAX: u64 = 40_000;

/// How bad a network is: one in so many requests; 0 for never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    pub(crate) slow_one_in: u64,
    pub(crate) late_one_in: u64,
    pub(crate) lost_one_in: u64,
    pub(crate) answer_lost_one_in: u64,
}

impl Weather {
    pub(crate) const CALM: Weather =
        Weather { slow_one_in: 0, late_one_in: 0, lost_one_in: 0, answer_lost_one_in: 0 };
}

/// The way from a host to a store.
pub(crate) struct Link {
    random: SimRandom,
    weather: Arc<Mutex<Weather>>,
    pub(crate) is_cut: AtomicBool,
}

impl Link {
    pub(crate) fn new(random: &SimRandom, weather: &Arc<Mutex<Weather>>) -> Self {
        Link { random: random.clone(), weather: weather.clone(), is_cut: AtomicBool::new(false) }
    }

    fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    fn delay(&self, is_write: bool) -> Duration {
        let weather = *self.weather.lock();
        let ms = if is_write && self.random.one_in(weather.late_one_in) {
            self.random.below(LATE_MS_MAX)
        } else if self.random.one_in(weather.slow_one_in) {
            self.random.below(3000)
        } else {
            1 + self.random.below(12)
        };
        Duration::from_millis(ms)
    }

    /// Sends a request, which `arrive` carries out at the store when and if it arrives; its answer, none if
    /// the connection is reset. Waits for ever if there is none at all.
    pub(crate) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        is_write: bool,
        arrive: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let weather = *self.weather.lock();
        let mut delay = self.delay(is_write);
        let is_lost = self.random.one_in(weather.lost_one_in);
        let answer_is_lost = self.random.one_in(weather.answer_lost_one_in);
        let is_reset = self.random.one_in(2);
        let mut is_sent = !is_lost;
        if self.is_cut() {
            // It may be in a queue behind the cut.
            is_sent = is_write && self.random.one_in(4);
            delay += Duration::from_millis(2000 + self.random.below(LATE_MS_MAX / 2));
        }
        let (sender, answer) = oneshot::channel();
        let link = self.clone();
        tokio::spawn(async move {
            if !is_sent {
                return end(sender, is_reset).await;
            }
            sleep(delay).await;
            let Some(outcome) = arrive() else { return end(sender, is_reset).await };
            let back = link.delay(false);
            if answer_is_lost || link.is_cut() {
                return end(sender, is_reset).await;
            }
            sleep(back).await;
            drop(sender.send(outcome));
        });
        answer.await.ok()
    }
}

/// No answer comes: at once, or after longer than anybody waits.
async fn end<T>(sender: oneshot::Sender<T>, is_reset: bool) {
    if !is_reset {
        sleep(Duration::from_secs(10)).await;
    }
    drop(sender);
}
