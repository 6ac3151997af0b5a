//! The time limit of requests, for little: nearly all of them end long before it, so a connection has one
//! timer, which is set anew when it has run down, not with every request. What always holds: a request has
//! its whole time, and no more.

use base::{BoxFuture, Clock};
use parking_lot::Mutex;
use std::time::Duration;

/// The timer of requests that come one after the other, as those of a connection.
#[derive(Default)]
pub(crate) struct RequestTimer {
    idle: Mutex<Option<Running>>,
}

/// A sleep that was begun for this request or an earlier one.
struct Running {
    /// When it ends (monotonic time).
    until: Duration,
    sleep: BoxFuture<'static, ()>,
}

/// A sleep that is reused when the request ends before it.
struct Lent<'a> {
    timer: &'a RequestTimer,
    running: Option<Running>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        *self.timer.idle.lock() = self.running.take();
    }
}

impl RequestTimer {
    /// Completes after `sleep_for`, as [`Clock::sleep`] does.
    pub(crate) async fn sleep(&self, clock: &dyn Clock, sleep_for: Duration) {
        let until = clock.monotonic() + sleep_for;
        let running = self.idle.lock().take();
        // One that ends too late is of no use; one that ends early is followed by another.
        let running = running.filter(|running| running.until <= until);
        let mut lent = Lent { timer: self, running };
        let mut left = sleep_for;
        loop {
            let begin = || Running { until, sleep: clock.sleep(left) };
            lent.running.get_or_insert_with(begin).sleep.as_mut().await;
            lent.running = None;
            left = until.saturating_sub(clock.monotonic());
            if left.is_zero() {
                return;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // The test is the clock that production code is handed.
mod tests {
    use super::*;
    use base::Ticks;
    use futures_util::FutureExt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts the sleeps that were begun.
    struct Counting {
        started: tokio::time::Instant,
        sleeps: AtomicUsize,
    }

    impl Clock for Counting {
        fn now(&self) -> Ticks {
            Ticks(0)
        }
        fn monotonic(&self) -> Duration {
            self.started.elapsed()
        }
        fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
            self.sleeps.fetch_add(1, Ordering::Relaxed);
            Box::pin(tokio::time::sleep(sleep_for))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_share_a_sleep_and_each_has_its_whole_time() {
        let clock = Counting { started: tokio::time::Instant::now(), sleeps: AtomicUsize::new(0) };
        let timer = RequestTimer::default();
        let second = Duration::from_secs(1);
        for _ in 0..5 {
            assert!(timer.sleep(&clock, 30 * second).now_or_never().is_none());
            tokio::time::advance(second).await;
        }
        assert_eq!(clock.sleeps.load(Ordering::Relaxed), 1);
        // The sleep under way ends 25 seconds from now.
        let began = clock.monotonic();
        timer.sleep(&clock, 30 * second).await;
        let took = clock.monotonic() - began;
        assert!(took >= 30 * second && took < 31 * second, "{took:?}");
        assert_eq!(clock.sleeps.load(Ordering::Relaxed), 2);
        // A shorter limit does not wait for a longer one's sleep.
        assert!(timer.sleep(&clock, 30 * second).now_or_never().is_none());
        let began = clock.monotonic();
        timer.sleep(&clock, second).await;
        let took = clock.monotonic() - began;
        assert!(took >= second && took < 2 * second, "{took:?}");
    }
}
