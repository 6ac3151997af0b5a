//! The requests of one worker that wait for their account's turn.
//!
//! A worker runs what is ready in the order in which it became ready, so a hundred batches of one account are
//! all in front of the small request that comes next. With more than one account, requests of an account that
//! has used more than its part therefore wait here, outside of the worker's own queue, and go back to it one
//! at a time.
//!
//! What always holds: with one account there is no lock on a request's path; a request that is given up while
//! it waits, or after it was let through, stops no other.

use super::turn_queue::{Ticket, TurnQueue};
use base::Clock;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Workers that have turns of their own; those of higher numbers share them.
const WORKERS_MAX: usize = 256;

/// More than one account takes part.
const SEVERAL: u64 = u64::MAX;
/// None has yet.
const NONE: u64 = u64::MAX - 1;

/// The turns of all workers.
#[derive(Default)]
pub(crate) struct AllTurns {
    by_worker: Mutex<BTreeMap<usize, Arc<WorkerTurns>>>,
}

impl AllTurns {
    /// Those of a worker.
    pub(crate) fn of_worker(&self, worker: usize, clock: &Arc<dyn Clock>) -> Arc<WorkerTurns> {
        let mut by_worker = self.by_worker.lock();
        let turns = by_worker.entry(worker % WORKERS_MAX);
        turns.or_insert_with(|| Arc::new(WorkerTurns::new(clock.clone()))).clone()
    }
}

/// The turns of one worker.
pub(crate) struct WorkerTurns {
    /// The only account that takes part, or [`SEVERAL`] or [`NONE`].
    only: AtomicU64,
    waiting: Mutex<Waiting>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Waiting {
    queue: TurnQueue,
    requests: BTreeMap<Ticket, Option<Waker>>,
}

impl Waiting {
    /// Lets the next one through. It is woken without the lock.
    fn let_through(&mut self, now: Duration) -> Option<Waker> {
        let ticket = self.queue.let_through(now)?;
        self.requests.remove(&ticket).flatten()
    }
}

impl WorkerTurns {
    /// Nobody waits.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        WorkerTurns { only: AtomicU64::new(NONE), waiting: Mutex::default(), clock }
    }

    /// Whether work has to be measured.
    pub(super) fn is_shared(&self) -> bool {
        self.only.load(Ordering::Relaxed) == SEVERAL
    }

    pub(super) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Returns when it is the account's turn. `Some`: the next request waits for this one's work.
    pub(super) async fn wait(&self, account: u32) -> Option<LetThrough<'_>> {
        if self.only.load(Ordering::Relaxed) == u64::from(account) {
            return None;
        }
        let ticket = self.ask(account)?;
        let let_through = InQueue { turns: self, ticket: Some(ticket) }.await;
        // Whatever else is ready goes first, and what has come to the sockets meanwhile: another account's
        // request may be among it.
        tokio::task::yield_now().await;
        Some(let_through)
    }

    fn ask(&self, account: u32) -> Option<Ticket> {
        let mut waiting = self.waiting.lock();
        let now = self.clock.monotonic();
        let ticket = waiting.queue.ask(account, now);
        let only = waiting.queue.only().map_or(SEVERAL, u64::from);
        self.only.store(only, Ordering::Relaxed);
        match ticket {
            Some(ticket) => {
                waiting.requests.insert(ticket, None);
            }
            // One that was let through may be over its time.
            None => {
                let next = waiting.let_through(now);
                drop(waiting);
                next.into_iter().for_each(Waker::wake);
            }
        }
        ticket
    }

    /// Work of an account has cost so much; `ends_turn`: it was what the next request waits for.
    pub(super) fn charge(&self, account: u32, cost: Duration, ends_turn: bool) {
        let now = self.clock.monotonic();
        let next = {
            let mut waiting = self.waiting.lock();
            waiting.queue.charge(account, cost);
            if ends_turn {
                waiting.queue.pass();
            }
            waiting.let_through(now)
        };
        next.into_iter().for_each(Waker::wake);
    }

    /// Whether nothing waits, and nothing that was let through has yet to run.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.requests.is_empty()
            && !waiting.queue.has_let_through()
            && waiting.queue.clone().let_through(Duration::ZERO).is_none()
    }

    /// What was let through has run, or never will.
    fn pass(&self) {
        let now = self.clock.monotonic();
        let next = {
            let mut waiting = self.waiting.lock();
            waiting.queue.pass();
            waiting.let_through(now)
        };
        next.into_iter().for_each(Waker::wake);
    }
}

/// A request that was let through: the next one waits until this is dropped.
pub(super) struct LetThrough<'a> {
    turns: Option<&'a WorkerTurns>,
}

impl LetThrough<'_> {
    /// Its work's cost ends its turn instead.
    pub(super) fn hand_over(mut self) {
        self.turns = None;
    }
}

impl Drop for LetThrough<'_> {
    fn drop(&mut self) {
        if let Some(turns) = self.turns {
            turns.pass();
        }
    }
}

/// A request that waits, until it is let through or dropped.
struct InQueue<'a> {
    turns: &'a WorkerTurns,
    ticket: Option<Ticket>,
}

impl<'a> Future for InQueue<'a> {
    type Output = LetThrough<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let turns = self.turns;
        if let Some(ticket) = self.ticket {
            let now = turns.clock.monotonic();
            let mut waiting = turns.waiting.lock();
            if let Some(waker) = waiting.requests.get_mut(&ticket) {
                match waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => *waker = Some(context.waker().clone()),
                }
                // Without it nothing would be let through if none is at this time.
                let next = waiting.let_through(now);
                if waiting.requests.contains_key(&ticket) {
                    drop(waiting);
                    next.into_iter().for_each(Waker::wake);
                    return Poll::Pending;
                }
                // It was this one.
            }
        }
        self.ticket = None;
        Poll::Ready(LetThrough { turns: Some(turns) })
    }
}

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let mut waiting = self.turns.waiting.lock();
        match waiting.requests.remove(&ticket) {
            Some(_) => waiting.queue.leave(ticket),
            // It was let through, and does not know yet.
            None => {
                drop(waiting);
                self.turns.pass();
            }
        }
    }
}
