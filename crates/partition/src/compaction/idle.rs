//! Whether it is quiet: what makes work for the disk has not happened for a while.
//!
//! Then work that is not due takes the disk and its one thread from no other work. Merges watch for flushes
//! of memory tables, of any range, and collections for what changes blob data, too. It is not the last write
//! that counts: somebody renews a lease every few seconds on most servers.

use std::time::Duration;

/// It is quiet so long after the last such event. A range that is written to fast flushes every few seconds.
const IDLE_AFTER: Duration = Duration::from_secs(10);

/// When an event was last noticed.
pub(crate) struct IdleWatch {
    events: u64,
    since: Duration,
}

impl IdleWatch {
    /// There may have been an event just `now`.
    pub(crate) fn new(now: Duration) -> Self {
        IdleWatch { events: 0, since: now }
    }

    /// How long it is from `now` until it is quiet, if there is no further event than these; zero: it is.
    pub(crate) fn comes_in(&mut self, events: u64, now: Duration) -> Duration {
        if events != self.events {
            *self = IdleWatch { events, since: now };
        }
        (self.since + IDLE_AFTER).saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_quiet_when_nothing_happened_for_long() {
        let seconds = Duration::from_secs;
        let mut idle = IdleWatch::new(seconds(100));
        for (events, now, comes_in) in [
            (0, 100, 10),
            (0, 104, 6),
            (1, 109, 10),
            (1, 118, 1),
            (1, 119, 0),
            (1, 1000, 0),
            (3, 1000, 10),
            (3, 1010, 0),
        ] {
            assert_eq!(idle.comes_in(events, seconds(now)), seconds(comes_in), "{events} at {now}");
        }
    }
}
