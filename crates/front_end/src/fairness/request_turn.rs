//! One request's side of the turns: where it waits, and what its work costs.
//!
//! A request waits for its turn before its operation begins, and again before each portion of a body: at
//! these places it holds nothing that others need. What it does later, such as what follows a group commit,
//! is charged but never held up.
//!
//! What always holds: a request that was let through ends its turn with the first time that it gives way.

use super::worker_turns::WorkerTurns;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The turn of one request.
pub(crate) struct RequestTurn<'a> {
    turns: &'a WorkerTurns,
    account: u32,
    /// Whether the next request waits for this one's work.
    is_let_through: AtomicBool,
}

impl<'a> RequestTurn<'a> {
    /// Of a request of an account, by its number.
    pub(crate) fn new(turns: &'a WorkerTurns, account: u32) -> Self {
        RequestTurn { turns, account, is_let_through: AtomicBool::new(false) }
    }

    /// Returns when it is the account's turn.
    pub(crate) async fn wait(&self) {
        if let Some(let_through) = self.turns.wait(self.account).await {
            let_through.hand_over();
            // Inside of `measured`, whose poll is the turn.
            if self.is_let_through.swap(true, Ordering::Relaxed) {
                self.turns.charge(self.account, Duration::ZERO, true);
            }
        }
    }

    /// Runs `work`, in which [`Self::wait`] is called, and charges the account with what it costs.
    pub(crate) async fn measured<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            if !self.turns.is_shared() {
                let polled = work.as_mut().poll(context);
                if self.is_let_through.swap(false, Ordering::Relaxed) {
                    self.turns.charge(self.account, Duration::ZERO, true);
                }
                return polled;
            }
            let began_at = self.turns.monotonic();
            let polled = work.as_mut().poll(context);
            let cost = self.turns.monotonic().saturating_sub(began_at);
            let ends_turn = self.is_let_through.swap(false, Ordering::Relaxed);
            self.turns.charge(self.account, cost, ends_turn);
            polled
        })
        .await
    }
}

impl Drop for RequestTurn<'_> {
    fn drop(&mut self) {
        // A panic in its work.
        if self.is_let_through.swap(false, Ordering::Relaxed) {
            self.turns.charge(self.account, Duration::ZERO, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BoxFuture, Clock, Ticks};
    use futures_util::FutureExt;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use tokio::task::{LocalSet, spawn_local, yield_now};

    /// Time that only passes as work is done.
    #[derive(Default)]
    struct WorkClock(AtomicU64);

    impl WorkClock {
        fn work(&self, micros: u64) {
            self.0.fetch_add(micros, Ordering::Relaxed);
        }
    }

    impl Clock for WorkClock {
        fn now(&self) -> Ticks {
            Ticks(0)
        }
        fn monotonic(&self) -> Duration {
            Duration::from_micros(self.0.load(Ordering::Relaxed))
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    async fn request(turns: &WorkerTurns, clock: &WorkClock, account: u32, micros: u64) {
        let turn = RequestTurn::new(turns, account);
        turn.measured(async {
            turn.wait().await;
            clock.work(micros);
        })
        .await;
        yield_now().await;
    }

    /// The longest time that a small request takes beside others of `noisy_account`.
    async fn longest_beside(noisy_account: u32) -> Duration {
        let clock = Arc::new(WorkClock::default());
        let turns = Arc::new(WorkerTurns::new(clock.clone()));
        let mut longest = Duration::ZERO;
        let tasks = LocalSet::new();
        for _ in 0..64 {
            let (turns, clock) = (turns.clone(), clock.clone());
            tasks.spawn_local(async move {
                loop {
                    request(&turns, &clock, noisy_account, 300).await;
                }
            });
        }
        let quiet = async {
            for round in 0..300 {
                let began_at = clock.monotonic();
                request(&turns, &clock, 1, 40).await;
                if round > 0 {
                    longest = longest.max(clock.monotonic() - began_at);
                }
            }
        };
        tasks.run_until(quiet).await;
        longest
    }

    #[tokio::test]
    async fn a_small_request_does_not_wait_for_another_accounts_many() {
        let starved = longest_beside(1).await;
        assert!(
            starved >= Duration::from_millis(10),
            "those of one account wait for each other: {starved:?}"
        );
        let fair = longest_beside(2).await;
        assert!(fair <= Duration::from_micros(3 * 300), "{fair:?}");
    }

    #[tokio::test]
    async fn requests_that_are_given_up_stop_no_others() {
        let clock = Arc::new(WorkClock::default());
        let turns = Arc::new(WorkerTurns::new(clock.clone()));
        request(&turns, &clock, 1, 5000).await;
        request(&turns, &clock, 2, 10).await;
        let tasks = LocalSet::new();
        let done = Arc::new(AtomicU64::new(0));
        tasks
            .run_until(async {
                for given_up_after in 0..40 {
                    let (turns, clock, done) = (turns.clone(), clock.clone(), done.clone());
                    spawn_local(async move {
                        let mut request = Box::pin(request(&turns, &clock, 1, 300));
                        for _ in 0..given_up_after {
                            if (&mut request).now_or_never().is_some() {
                                done.fetch_add(1, Ordering::Relaxed);
                                return;
                            }
                            yield_now().await;
                        }
                    });
                }
                for _ in 0..400 {
                    yield_now().await;
                }
            })
            .await;
        assert!(done.load(Ordering::Relaxed) > 0);
        assert!(turns.is_idle(), "nothing waits, and the last turn has ended");
    }
}
