//! When the rows of deleted containers of a range's checkpoints were counted last, and so when they may be
//! again.
//!
//! What always holds: counts take a small part of the time only, however long each takes.

use std::time::Duration;

/// Between two counts of the checkpoints of a range, at least.
const COUNT_EVERY_MIN: Duration = Duration::from_secs(5);
/// A count that took long is not repeated before so many times as long.
const COUNT_PAUSE_FACTOR: u32 = 16;

/// When dead rows were counted last, and how long that took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastCount {
    /// Monotonic time; `None`: never.
    pub(super) ended: Option<Duration>,
    pub(super) took: Duration,
}

impl LastCount {
    /// Whether they may be counted again.
    pub(super) fn is_over(self, now: Duration) -> bool {
        let pause = COUNT_EVERY_MIN.max(self.took.saturating_mul(COUNT_PAUSE_FACTOR));
        self.ended.is_none_or(|ended| now.saturating_sub(ended) >= pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_leave_a_pause_that_grows_with_what_they_take() {
        let seconds = Duration::from_secs;
        let never = LastCount::default();
        assert!(never.is_over(Duration::ZERO));
        for (took, now, is_over) in
            [(0, 104, false), (0, 105, true), (2, 131, false), (2, 132, true), (0, 3, false)]
        {
            let last = LastCount { ended: Some(seconds(100)), took: seconds(took) };
            assert_eq!(last.is_over(seconds(now)), is_over, "took {took} s, at {now} s");
        }
    }
}
