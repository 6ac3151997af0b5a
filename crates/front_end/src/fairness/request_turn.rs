//! One request's side of the turns: where it waits, and what its work costs.
//!
//! A request waits for its turn before its operation begins, and again before each portion of a body: at these
//! places it holds nothing that others need. What it does later, such as what follows a group commit, is
//! charged but never held up.
//!
//! What always holds: a request that was let through ends its turn with the first time that it gives way.

use super::worker_turns::WorkerTurns;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

/// The turn of one request.
pub(crate) struct RequestTurn<'a> {
    turns: &'a WorkerTurns,
    account: u32,
    /// Whether the next request waits for this one's work.
    is_let_through: AtomicBool,
}

impl<'a> RequestTurn<'a> {
    pub(super) fn new(turns: &'a WorkerTurns, account: u32) -> Self {
        RequestTurn { turns, account, is_let_through: AtomicBool::new(false) }
    }

    /// Returns when it is the account's turn.
    pub(crate) async fn wait(&self) {
        if let Some(let_through) = self.turns.wait(self.account).await {
            let_through.hand_over();
            // Inside of `measured`, whose poll is the turn.
            if self.is_let_through.swap(true, Ordering::Relaxed) {
                self.turns.charge(self.account, std::time::Duration::ZERO, true);
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
                    self.turns.charge(self.account, std::time::Duration::ZERO, true);
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
            self.turns.charge(self.account, std::time::Duration::ZERO, true);
        }
    }
}
