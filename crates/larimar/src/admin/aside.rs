//! Work that may wait for a disk, aside from the thread of the admin side: `/health` is answered while a disk
//! does not.
//!
//! What always holds: so much of it is under way at most, however long the disk takes, and the rest is
//! refused at once, so that connections stay free for others; nobody waits longer than a bound; what was
//! begun goes on to its end.

use super::route::Answer;
use crate::apart::run_apart;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Work under way, each with a thread of its own.
const WORK_COUNT_MAX: usize = 8;
/// How long a client waits for it at most.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What is done aside.
#[derive(Debug)]
pub(super) struct Aside {
    free: Arc<Semaphore>,
    pub(super) wait_max: Duration,
}

/// Why there is no outcome yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotDone {
    /// It was not begun.
    Busy,
    /// It goes on.
    Waits,
}

impl Default for Aside {
    fn default() -> Self {
        Aside { free: Arc::new(Semaphore::new(WORK_COUNT_MAX)), wait_max: WAIT_MAX }
    }
}

impl Aside {
    /// Does the work on a thread of its own and waits for it, as long as `wait_max` allows.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NotDone> {
        let permit = self.free.clone().try_acquire_owned().map_err(|_| NotDone::Busy)?;
        let runtime = Handle::current();
        let done = tokio::spawn(run_apart(move || {
            let done = runtime.block_on(work);
            drop(permit);
            done
        }));
        match tokio::time::timeout(self.wait_max, done).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(broken)) => match broken.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(NotDone::Waits),
            },
            Err(_) => Err(NotDone::Waits),
        }
    }
}

impl NotDone {
    pub(super) fn answer(self) -> Answer {
        let why = match self {
            NotDone::Busy => "so much else waits for the disk that this was not begun",
            NotDone::Waits => {
                "the disk has not answered in time; what was begun goes on, and is in the log if it changes something"
            }
        };
        Answer::error(503, "storage", why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// A stalled disk took all connections, one after the other.
    #[tokio::test]
    async fn what_waits_is_bounded_and_ends_when_it_can() {
        let aside = Aside { wait_max: Duration::from_millis(20), ..Aside::default() };
        let mut stalled = Vec::new();
        for _ in 0..WORK_COUNT_MAX {
            let (sender, receiver) = channel::<()>();
            stalled.push(sender);
            assert_eq!(aside.run(async move { receiver.recv().is_ok() }).await, Err(NotDone::Waits));
        }
        assert_eq!(aside.run(async {}).await, Err(NotDone::Busy));
        drop(stalled);
        while aside.free.available_permits() < WORK_COUNT_MAX {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(Aside::default().run(async { 7 }).await, Ok(7));
    }
}
