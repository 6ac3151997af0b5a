//! Whether it is quiet: no memory table of any range became a checkpoint for a while, because little is written.
//!
//! Then merges that are not due take the disk and the one thread of merges from nobody. It is the flush that counts and not
//! the last write: somebody renews a lease every few seconds on most servers.

use std::time::Duration;

/// It is quiet so long after the last flush. A range that is written to fast flushes every few seconds.
const QUIET_AFTER: Duration = Duration::from_secs(10);

/// When a flush was last noticed.
pub(crate) struct Quiet {
    flushes: u64,
    since: Duration,
}

impl Quiet {
    /// There may have been a flush just `now`.
    pub(crate) fn new(now: Duration) -> Self {
        Quiet { flushes: 0, since: now }
    }

    /// How long it is from `now` until it is quiet, if there is no further flush than these; zero: it is.
    pub(crate) fn comes_in(&mut self, flushes: u64, now: Duration) -> Duration {
        if flushes != self.flushes {
            *self = Quiet { flushes, since: now };
        }
        (self.since + QUIET_AFTER).saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_quiet_when_nothing_was_flushed_for_long() {
        let seconds = Duration::from_secs;
        let mut quiet = Quiet::new(seconds(100));
        for (flushes, now, comes_in) in [
            (0, 100, 10),
            (0, 104, 6),
            (1, 109, 10),
            (1, 118, 1),
            (1, 119, 0),
            (1, 1000, 0),
            (3, 1000, 10),
            (3, 1010, 0),
        ] {
            assert_eq!(quiet.comes_in(flushes, seconds(now)), seconds(comes_in), "{flushes} at {now}");
        }
    }
}
