//! What a connection is doing, noted by its socket and its requests and looked at now and then: one timer for
//! each connection, none for each request, answer or part of one.
//!
//! What always holds: a client that takes its answer, however slowly, is never called stalled or silent; one
//! that takes nothing is found in time, wherever the bytes wait for it.

use base::Clock;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;

/// How often a connection is looked at within the time that it may be silent.
const SILENCE_LOOKS: u32 = 2;

/// How often within the time in which something has to move.
const STALL_LOOKS: u32 = 4;

/// What is noted of one connection.
#[derive(Default)]
pub(super) struct Activity {
    started: AtomicU64,
    finished: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    is_blocked: AtomicBool,
    /// Its socket is reset, not closed.
    is_reset: AtomicBool,
    /// When it was looked at last, in nanoseconds of the monotonic clock; read by the requests of HTTP/2.
    looked_at_ns: AtomicU64,
    looks: Notify,
}

/// What a connection has done up to a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Observation {
    started: u64,
    finished: u64,
    read_bytes: u64,
    written_bytes: u64,
    /// The socket took nothing when it was offered something last.
    is_blocked: bool,
}

/// How long a connection may be without what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Without requests.
    pub(super) silence_max: Duration,
    /// Without a move of what is under way.
    pub(super) unmoved_for_max: Duration,
    /// Whether requests are looked at together, as those of HTTP/1.1, which come one after the other.
    /// Otherwise each is looked at on its own ([`Activity::run_request`]).
    pub(super) requests_together: bool,
}

/// Why a connection is not waited for any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    /// No request is under way.
    Silent,
    /// The client takes no more of its answer, or sends no more of its request.
    Stalled,
}

/// What was seen, and since when.
#[derive(Debug)]
struct Watch {
    seen: Observation,
    /// The last look that saw something under way, or news of it.
    busy_at: Duration,
    /// The last look before which the socket had taken bytes, or had not been waited for.
    taken_at: Duration,
    /// The last look before which anything had moved.
    moved_at: Duration,
}

impl Patience {
    /// So that each time is exceeded by half at most.
    fn look_every(&self) -> Duration {
        (self.silence_max / SILENCE_LOOKS).min(self.unmoved_for_max / STALL_LOOKS)
    }
}

impl Watch {
    fn new(seen: Observation, now: Duration) -> Self {
        Watch { seen, busy_at: now, taken_at: now, moved_at: now }
    }

    fn look(&mut self, seen: Observation, now: Duration, patience: &Patience) -> Option<EndReason> {
        let is_under_way = seen.started != seen.finished;
        let written = seen.written_bytes != self.seen.written_bytes;
        // What is only read does not count here: half a request, sent byte by byte, is none.
        let has_new_request = (seen.started, seen.finished) != (self.seen.started, self.seen.finished);
        if is_under_way || seen.is_blocked || written || has_new_request {
            self.busy_at = now;
        }
        if written || !seen.is_blocked {
            self.taken_at = now;
        }
        if seen != self.seen || !is_under_way {
            self.moved_at = now;
        }
        self.seen = seen;
        let waits_since =
            if patience.requests_together { self.taken_at.min(self.moved_at) } else { self.taken_at };
        if now.saturating_sub(waits_since) >= patience.unmoved_for_max {
            return Some(EndReason::Stalled);
        }
        (now.saturating_sub(self.busy_at) >= patience.silence_max).then_some(EndReason::Silent)
    }
}

impl Activity {
    /// The socket gave so many bytes.
    pub(super) fn note_read(&self, size: usize) {
        self.read_bytes.fetch_add(size as u64, Ordering::Relaxed);
    }

    /// The socket took so many bytes.
    pub(super) fn note_written(&self, size: usize) {
        self.written_bytes.fetch_add(size as u64, Ordering::Relaxed);
        self.is_blocked.store(false, Ordering::Relaxed);
    }

    /// Whether the connection ends with a reset.
    pub(super) fn is_reset(&self) -> bool {
        self.is_reset.load(Ordering::Relaxed)
    }

    /// The socket takes nothing now.
    pub(super) fn note_blocked(&self) {
        self.is_blocked.store(true, Ordering::Relaxed);
    }

    fn seen(&self) -> Observation {
        Observation {
            started: self.started.load(Ordering::Relaxed),
            finished: self.finished.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            is_blocked: self.is_blocked.load(Ordering::Relaxed),
        }
    }

    /// Completes when a time of `patience` is over, at the latest after half as long again.
    pub(super) async fn end(&self, clock: &dyn Clock, patience: Patience) -> EndReason {
        let mut watch = Watch::new(self.seen(), clock.monotonic());
        loop {
            clock.sleep(patience.look_every()).await;
            let now = clock.monotonic();
            if let Some(ended) = watch.look(self.seen(), now, &patience) {
                return ended;
            }
            self.tell_look(now);
        }
    }

    fn tell_look(&self, now: Duration) {
        self.looked_at_ns.store(now.as_nanos() as u64, Ordering::Relaxed);
        self.looks.notify_waiters();
    }

    /// Runs a request of HTTP/2 from its headers to the last byte of its answer, which is handed over when
    /// the client has freed buffer space for it. The request is cancelled when nothing has moved for
    /// `unmoved_for_max`, at the latest after half as long again: that resets its stream, and no other.
    ///
    /// A move is whatever wakes the request: a part of its body, buffer space for the next part of its
    /// answer, the disk.
    pub(super) async fn run_request(
        under_way: UnderWay,
        request: impl Future<Output = ()>,
        unmoved_for_max: Duration,
    ) {
        let activity = &*under_way.0;
        let mut request = pin!(request);
        let mut moved_at = None;
        loop {
            let mut look = pin!(activity.looks.notified());
            let mut poll_count = 0_u64;
            let is_done = poll_fn(|context| {
                poll_count += 1;
                if request.as_mut().poll(context).is_ready() {
                    return Poll::Ready(true);
                }
                look.as_mut().poll(context).map(|()| false)
            });
            if is_done.await {
                return;
            }
            let now = Duration::from_nanos(activity.looked_at_ns.load(Ordering::Relaxed));
            // The first poll and that of the look itself are nothing that has moved.
            match moved_at {
                Some(moved_at) if poll_count <= 2 => {
                    if now.saturating_sub(moved_at) >= unmoved_for_max {
                        tracing::debug!("a request whose client stands still is given up");
                        return;
                    }
                }
                _ => moved_at = Some(now),
            }
        }
    }
}

/// A request under way, until dropped.
pub(super) struct UnderWay(Arc<Activity>);

impl UnderWay {
    pub(super) fn start(activity: Arc<Activity>) -> Self {
        activity.started.fetch_add(1, Ordering::Relaxed);
        UnderWay(activity)
    }

    /// The connection ends with a reset.
    pub(super) fn note_reset(&self) {
        self.0.is_reset.store(true, Ordering::Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.finished.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
