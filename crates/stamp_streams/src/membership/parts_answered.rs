//! When the object store last answered a part of this process: pure.

use std::time::Duration;

/// When the object store last answered a part of this process.
#[derive(Debug, Default)]
pub(crate) struct PartsAnswered {
    under_way: usize,
    /// By the monotonic clock: the newest answer, or when the first of those under way was sent after it.
    unanswered_since: Duration,
    /// Others know it.
    pub(crate) is_known: bool,
}

impl PartsAnswered {
    pub(crate) fn sent(&mut self, now: Duration) {
        if self.under_way == 0 && !self.is_known {
            self.unanswered_since = now;
        }
        self.under_way += 1;
    }

    pub(crate) fn answered(&mut self, now: Duration) {
        self.unanswered_since = now;
    }

    pub(crate) fn ended(&mut self) {
        self.under_way -= 1;
    }

    pub(crate) fn is_cut_off(&self, now: Duration, patience: Duration) -> bool {
        let waits = self.under_way > 0 || self.is_known;
        waits && now.saturating_sub(self.unanswered_since) >= patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    #[test]
    fn a_process_is_cut_off_once_parts_wait_and_none_is_answered() {
        let mut parts = PartsAnswered::default();
        assert!(!parts.is_cut_off(at(9), PATIENCE), "nothing was sent");
        parts.sent(at(10));
        parts.sent(at(11));
        assert!(!parts.is_cut_off(at(11), PATIENCE));
        assert!(parts.is_cut_off(at(12), PATIENCE));
        parts.answered(at(12));
        parts.ended();
        assert!(!parts.is_cut_off(at(13), PATIENCE), "one of two was answered");
        assert!(parts.is_cut_off(at(14), PATIENCE));
        parts.ended();
        assert!(!parts.is_cut_off(at(14), PATIENCE), "nothing waits");
    }

    #[test]
    fn the_word_stands_until_a_part_is_answered() {
        let mut parts = PartsAnswered::default();
        parts.sent(at(10));
        parts.is_known = true;
        parts.ended();
        assert!(parts.is_cut_off(at(15), PATIENCE), "the part was given up");
        parts.sent(at(20));
        assert!(parts.is_cut_off(at(20), PATIENCE));
        parts.answered(at(21));
        assert!(!parts.is_cut_off(at(22), PATIENCE));
    }
}
