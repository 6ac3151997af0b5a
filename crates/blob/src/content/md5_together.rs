//! MD5 of small bodies that a worker has at hand at the same time, computed together
//! ([`md5_lanes`](crate::md5_lanes)).
//!
//! Requests come in bursts: a group commit answers some tens, whose clients ask again at once. Each joins the
//! batch of its thread; once the scheduler has let all run that were ready, the first that goes on computes
//! the digests of all.
//!
//! What always holds: nobody waits for another request, only for the scheduler, and a request that is given
//! up leaves the others theirs. A batch is bounded.

use crate::content::md5_lanes::{Md5Digest, md5_of_each};
use base::give_way;
use bytes::Bytes;
use md5::{Digest, Md5};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

/// Bodies of a batch, at most. More are as fast as these, and their bytes would be out of the processor's
/// cache.
const BATCH_LEN_MAX: usize = 32;

/// Smaller bodies are hashed alone, at once: that takes less than another turn of the scheduler.
const BODY_SIZE_BYTES_MIN: usize = 512;

/// Bodies, and then their digests. The scheduler wakes it when all that were ready have run.
#[derive(Default)]
struct Batch(Mutex<State>);

#[derive(Default)]
struct State {
    /// Until they are hashed.
    bodies: Vec<Bytes>,
    /// Of those who wait, by the places of their bodies.
    waiting: Vec<Option<Waker>>,
    /// Nobody joins any more.
    is_due: bool,
    digests: Vec<Md5Digest>,
}

thread_local! {
    /// The batch of this thread. Only those who need it keep it.
    static LAST: RefCell<Weak<Batch>> = const { RefCell::new(Weak::new()) };
}

impl Wake for Batch {
    fn wake(self: Arc<Self>) {
        let mut state = self.0.lock();
        state.is_due = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Batch {
    /// Where the body is, if it was taken.
    fn add(&self, body: &Bytes) -> Option<usize> {
        let mut state = self.0.lock();
        if state.is_due || state.bodies.len() == BATCH_LEN_MAX {
            return None;
        }
        state.bodies.push(body.clone());
        state.waiting.push(None);
        Some(state.bodies.len() - 1)
    }

    fn poll_digest(&self, at: usize, context: &mut Context<'_>) -> Poll<Md5Digest> {
        let mut state = self.0.lock();
        if !state.is_due {
            state.waiting[at] = Some(context.waker().clone());
            return Poll::Pending;
        }
        if state.digests.is_empty() {
            state.digests = md5_of_each(&std::mem::take(&mut state.bodies));
        }
        Poll::Ready(state.digests[at])
    }
}

/// Puts a body into this thread's batch and says where.
fn join(body: &Bytes) -> (Arc<Batch>, usize) {
    let (batch, at) = LAST.with_borrow_mut(|last| {
        let joined = last.upgrade().and_then(|batch| batch.add(body).map(|at| (batch, at)));
        joined.unwrap_or_else(|| {
            let batch = Arc::<Batch>::default();
            *last = Arc::downgrade(&batch);
            let at = batch.add(body).unwrap_or_default();
            (batch, at)
        })
    });
    // The scheduler is asked to wake the batch, and that only: the request may be polled again before anybody
    // else. Each asks: a runtime that ends forgets those that asked it.
    let waker = Waker::from(batch.clone());
    let _ = pin!(give_way()).poll(&mut Context::from_waker(&waker));
    (batch, at)
}

/// The MD5 of a body.
pub(crate) async fn md5_of(body: Bytes) -> Md5Digest {
    if body.len() < BODY_SIZE_BYTES_MIN {
        return Md5::digest(&body).into();
    }
    let (batch, at) = join(&body);
    poll_fn(|context| batch.poll_digest(at, context)).await
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests start tasks as connections are started.
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::join_all;

    fn body(number: usize) -> Bytes {
        vec![number as u8; BODY_SIZE_BYTES_MIN + number % 5000].into()
    }

    fn expected(number: usize) -> Md5Digest {
        Md5::digest(body(number)).into()
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(test);
    }

    #[test]
    fn each_gets_its_own() {
        run(async {
            for count in [1, 2, 3, BATCH_LEN_MAX, BATCH_LEN_MAX + 1, 100] {
                let found = join_all((0..count).map(|number| md5_of(body(number * 37)))).await;
                assert_eq!(found, (0..count).map(|number| expected(number * 37)).collect::<Vec<_>>());
            }
        });
    }

    #[test]
    fn those_of_a_burst_are_hashed_together() {
        run(async {
            let burst = (0..20).map(|number| {
                tokio::spawn(async move {
                    let (batch, at) = join(&body(number));
                    let mut digest = pin!(poll_fn(|context| batch.poll_digest(at, context)));
                    for _ in 0..3 {
                        assert_eq!(
                            digest.as_mut().now_or_never(),
                            None,
                            "polled again before others have run"
                        );
                    }
                    assert_eq!(digest.await, expected(number));
                    batch.0.lock().digests.len()
                })
            });
            for one in burst.collect::<Vec<_>>() {
                assert_eq!(one.await.expect("it ends"), 20);
            }
        });
    }

    #[test]
    fn small_bodies_wait_for_nobody() {
        for len in [0, 1, 64, BODY_SIZE_BYTES_MIN - 1] {
            let body = Bytes::from(vec![b'x'; len]);
            assert_eq!(md5_of(body.clone()).now_or_never(), Some(Md5::digest(&body).into()));
        }
    }

    #[test]
    fn who_gives_up_leaves_the_others_theirs() {
        run(async {
            for given_up in [0, 1, 3] {
                let mut burst: Vec<_> = (0..4).map(|number| Box::pin(md5_of(body(number)))).collect();
                for one in &mut burst {
                    assert_eq!(one.now_or_never(), None);
                }
                drop(burst.remove(given_up));
                let digests = join_all(burst).await;
                let left = (0..4).filter(|number| *number != given_up);
                assert_eq!(digests, left.map(expected).collect::<Vec<_>>());
            }
        });
    }

    /// A runtime that ended in the middle, as a simulated crash does, left a batch that nobody would have
    /// woken.
    #[test]
    fn a_batch_that_was_left_behind_is_not_joined() {
        run(async { assert_eq!(md5_of(body(1)).now_or_never(), None) });
        run(async { assert_eq!(md5_of(body(2)).await, expected(2)) });
    }
}
