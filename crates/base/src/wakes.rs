//! Waking many tasks at once, with one signal for each thread that runs some of them.
//!
//! A task that is woken from another thread than its own costs that thread a signal to the other's event
//! loop, a system call each. When a group of operations is durable, half of those that wait for it are
//! another thread's. So a worker runs a relay: who wakes its tasks puts them into the relay's queue and
//! signals once, and the relay wakes them at home.
//!
//! What always holds: the signal comes after the queue was filled, so nobody in it sleeps on; threads without
//! a relay, and all of a simulation, are woken directly.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Waker};
use tokio::sync::Notify;

thread_local! {
    /// The relay of the worker that this thread is.
    static HERE: RefCell<Option<Arc<Relay>>> = const { RefCell::new(None) };
}

/// Wakes tasks of its thread.
#[derive(Default)]
struct Relay {
    /// As many as tasks of the thread wait for something at most: whoever puts one here has taken it out of
    /// where it waited.
    woken: Mutex<Vec<Waker>>,
    signal: Notify,
}

/// From now on this thread has a relay: what is returned, which runs on it for as long as the thread does.
pub(crate) fn relay() -> impl Future<Output = ()> + Send + 'static {
    let relay = Arc::new(Relay::default());
    HERE.set(Some(relay.clone()));
    async move {
        loop {
            relay.signal.notified().await;
            let woken = std::mem::take(&mut *relay.woken.lock());
            woken.into_iter().for_each(Waker::wake);
        }
    }
}

/// A task that waits, and its thread's relay, if the thread has one.
pub struct Sleeper {
    waker: Waker,
    relay: Option<Arc<Relay>>,
}

impl Sleeper {
    /// The task that is being polled on this thread.
    pub fn current(context: &Context<'_>) -> Self {
        Sleeper { waker: context.waker().clone(), relay: HERE.with_borrow(Option::clone) }
    }

    /// Whether waking this is waking the task that is being polled.
    pub fn is_current(&self, context: &Context<'_>) -> bool {
        self.waker.will_wake(context.waker())
    }
}

/// Wakes them all, each on its own thread.
pub fn wake_all(sleepers: Vec<Sleeper>) {
    let mut signalled: Vec<Arc<Relay>> = Vec::new();
    HERE.with_borrow(|here| {
        for Sleeper { waker, relay } in sleepers {
            match relay {
                Some(relay) if !here.as_ref().is_some_and(|here| Arc::ptr_eq(here, &relay)) => {
                    relay.woken.lock().push(waker);
                    if !signalled.iter().any(|one| Arc::ptr_eq(one, &relay)) {
                        signalled.push(relay);
                    }
                }
                _ => waker.wake(),
            }
        }
    });
    signalled.iter().for_each(|relay| relay.signal.notify_one());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spawner;
    use crate::system::WorkerSpawner;
    use std::future::poll_fn;
    use std::sync::mpsc;
    use std::task::Poll;
    use std::time::Duration;

    /// Sleeps until it is woken, and says which one it is after that.
    async fn sleep(asleep: mpsc::Sender<Sleeper>, told: mpsc::Sender<std::thread::ThreadId>) {
        let mut sent = false;
        poll_fn(|context| {
            if std::mem::replace(&mut sent, true) {
                return Poll::Ready(());
            }
            let sleeper = Sleeper::current(context);
            assert!(sleeper.is_current(context));
            asleep.send(sleeper).unwrap();
            Poll::Pending
        })
        .await;
        told.send(std::thread::current().id()).unwrap();
    }

    #[test]
    fn tasks_of_several_threads_wake_from_anywhere() {
        let spawner = WorkerSpawner::start(3, false).unwrap();
        let (asleep, sleepers) = mpsc::channel();
        let (told, threads) = mpsc::channel();
        for _ in 0..30 {
            spawner.spawn("sleeper", Box::pin(sleep(asleep.clone(), told.clone())));
        }
        let wait = Duration::from_secs(60);
        let sleepers: Vec<Sleeper> = (0..30).map(|_| sleepers.recv_timeout(wait).unwrap()).collect();
        assert!(sleepers.iter().all(|sleeper| sleeper.relay.is_some()), "workers have a relay");
        // Half from a thread that is no worker, half from a worker that has some of them itself.
        let mut sleepers = sleepers.into_iter();
        wake_all(sleepers.by_ref().take(15).collect());
        let rest: Vec<Sleeper> = sleepers.collect();
        spawner.spawn("waker", Box::pin(async move { wake_all(rest) }));
        let mut seen: Vec<_> = (0..30).map(|_| threads.recv_timeout(wait).unwrap()).collect();
        seen.sort_by_key(|thread| format!("{thread:?}"));
        seen.dedup();
        assert_eq!(seen.len(), 3, "each on its own thread");
    }
}
