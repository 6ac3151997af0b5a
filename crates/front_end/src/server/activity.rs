//! What a connection is doing, noted by its requests and looked at now and then: one timer for each connection, none for
//! each request or part of an answer. What always holds: a request counts as under way until its answer is sent or given up,
//! and an answer that is still taken, however slowly, is never called stalled.

use base::Clock;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often a connection is looked at within the time that it may be silent.
const SILENCE_LOOKS: u32 = 2;

/// Answers that are remembered before those that are sent are looked for among them: as many as HTTP/2 has at once.
const REPLY_COUNT_MAX: usize = 256;

/// Requests of one connection.
#[derive(Default)]
pub(super) struct Activity {
    started: AtomicU64,
    finished: AtomicU64,
    /// Answers that are sent bit by bit.
    replies: Mutex<Vec<WatchedReply>>,
}

struct WatchedReply {
    /// How often it was asked for more; gone with the answer.
    asked: Weak<AtomicU64>,
    /// How often at the look that saw it move last, and when that was.
    seen: Option<(u64, Duration)>,
}

impl Activity {
    /// Watches an answer for as long as what is returned is kept: it counts how often the answer is asked for more.
    pub(super) fn watch_reply(&self) -> Arc<AtomicU64> {
        let asked = Arc::new(AtomicU64::new(0));
        let mut replies = self.replies.lock();
        if replies.len() >= REPLY_COUNT_MAX {
            replies.retain(|reply| reply.asked.strong_count() > 0);
        }
        replies.push(WatchedReply { asked: Arc::downgrade(&asked), seen: None });
        asked
    }

    /// Completes when no request was under way, started or finished for `silence_max`, at the latest after half as
    /// long again; without one silence is fine. Completes as well when an answer was not asked for more for
    /// `taken_for_max`, at the latest after half as long again.
    pub(super) async fn silence(
        self: Arc<Self>,
        clock: Arc<dyn Clock>,
        silence_max: Option<Duration>,
        taken_for_max: Duration,
    ) {
        let look = || (self.started.load(Ordering::Relaxed), self.finished.load(Ordering::Relaxed));
        let look_every = (taken_for_max / (2 * SILENCE_LOOKS))
            .min(silence_max.map_or(Duration::MAX, |silence_max| silence_max / SILENCE_LOOKS));
        let mut seen = (look(), clock.monotonic());
        loop {
            clock.sleep(look_every).await;
            let (counts, now) = (look(), clock.monotonic());
            let silent = counts.0 == counts.1 && counts == seen.0;
            if !silent {
                seen = (counts, now);
            }
            let silent_for = now.saturating_sub(seen.1);
            if silence_max.is_some_and(|silence_max| silent_for >= silence_max) {
                return;
            }
            if self.has_stalled(now, taken_for_max) {
                tracing::debug!("a client took no more of its answer");
                return;
            }
        }
    }

    fn has_stalled(&self, now: Duration, taken_for_max: Duration) -> bool {
        let mut stalled = false;
        self.replies.lock().retain_mut(|reply| {
            let Some(asked) = reply.asked.upgrade() else { return false };
            let asked = asked.load(Ordering::Relaxed);
            match reply.seen {
                Some((before, at)) if before == asked => stalled |= now.saturating_sub(at) >= taken_for_max,
                _ => reply.seen = Some((asked, now)),
            }
            true
        });
        stalled
    }
}

/// A request under way, until dropped.
pub(super) struct UnderWay(Arc<Activity>);

impl UnderWay {
    pub(super) fn start(activity: Arc<Activity>) -> Self {
        activity.started.fetch_add(1, Ordering::Relaxed);
        UnderWay(activity)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.finished.fetch_add(1, Ordering::Relaxed);
    }
}
