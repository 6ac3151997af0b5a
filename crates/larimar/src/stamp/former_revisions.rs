//! Which revisions of etcd are some minutes old, by what this process has seen of them: whoever serves has
//! etcd forget what keys held before one of those.
//!
//! A process notes them whether it stands by or serves. What always holds: a revision that is called old was
//! there so long ago; those of another life of etcd are none of this one.

use base::Clock;
use parking_lot::Mutex;
use stamp::{Generation, Revision};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Between two that are kept, at least.
const NOTE_EVERY: Duration = Duration::from_secs(60);
/// How many are kept: the oldest go.
const KEPT_MAX: usize = 8;

/// What a process has seen.
pub(super) struct FormerRevisions {
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

impl FormerRevisions {
    /// Nothing was seen yet.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        FormerRevisions { clock, seen: Mutex::default() }
    }

    /// This one is there now.
    pub(super) fn note(&self, generation: Generation, revision: Revision) {
        self.seen.lock().note(self.clock.monotonic(), generation, revision);
    }

    /// The newest one of this life that was there so long ago.
    pub(super) fn older_than(&self, age: Duration, generation: Generation) -> Option<Revision> {
        self.seen.lock().older_than(age, self.clock.monotonic(), generation)
    }
}

/// Revisions, and when they were seen, by the monotonic clock.
#[derive(Default)]
struct Seen {
    generation: Option<Generation>,
    revisions: VecDeque<(Duration, Revision)>,
}

impl Seen {
    fn note(&mut self, now: Duration, generation: Generation, revision: Revision) {
        if self.generation != Some(generation) {
            *self = Seen { generation: Some(generation), revisions: VecDeque::new() };
        }
        let is_due = self.revisions.back().is_none_or(|(at, _)| now.saturating_sub(*at) >= NOTE_EVERY);
        if is_due && revision > Revision(0) {
            self.revisions.push_back((now, revision));
            if self.revisions.len() > KEPT_MAX {
                self.revisions.pop_front();
            }
        }
    }

    fn older_than(&self, age: Duration, now: Duration, generation: Generation) -> Option<Revision> {
        let is_old = |at: Duration| now.saturating_sub(at) >= age;
        let found = self.revisions.iter().rev().find(|(at, _)| is_old(*at));
        found.filter(|_| self.generation == Some(generation)).map(|(_, revision)| *revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each turn of serving began to wait anew: a stamp that changed hands every few minutes never had etcd
    /// forget anything.
    #[test]
    fn what_was_seen_before_a_turn_counts() {
        let (mut seen, minute) = (Seen::default(), |minutes: u64| Duration::from_secs(60 * minutes));
        let (first, second) = (Generation(1), Generation(2));
        let old = |seen: &Seen, now, generation| {
            seen.older_than(minute(5), minute(now), generation).map(|found| found.0)
        };
        assert_eq!(old(&seen, 100, first), None);
        for at in 0..=6 {
            seen.note(minute(at), first, Revision(100 + at));
            // More often than that changes nothing.
            seen.note(minute(at) + Duration::from_secs(59), first, Revision(999));
        }
        for (now, found) in [(4, None), (5, Some(100)), (6, Some(101)), (11, Some(106)), (100, Some(106))] {
            assert_eq!(old(&seen, now, first), found, "{now}");
        }
        assert_eq!(old(&seen, 100, second), None, "of another life");
        seen.note(minute(7), second, Revision(3));
        let found = (old(&seen, 100, first), old(&seen, 11, second), old(&seen, 12, second));
        assert_eq!(found, (None, None, Some(3)));
        for at in 8..40 {
            seen.note(minute(at), second, Revision(at));
        }
        assert_eq!(seen.revisions.len(), KEPT_MAX);
    }
}
