//! How tries with wrong tokens are slowed: a pure choice.
//!
//! What always holds: a right token waits for nothing, however many wrong ones came.

use std::time::Duration;

/// The wait after the first wrong token; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// After so long without a wrong token they are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Wrong tries that wait at the same time; further ones are refused at once.
pub(super) const WAITING_COUNT_MAX: usize = 16;

/// Wrong tries of late.
#[derive(Debug, Default)]
pub(super) struct Tries {
    count: u32,
    last_at: Duration,
}

impl Tries {
    /// A wrong token came at `now` (monotonic). Returns how long its answer waits, and how many there were.
    pub(super) fn note_wrong(&mut self, now: Duration) -> (Duration, u32) {
        if now.saturating_sub(self.last_at) >= FORGOTTEN_AFTER {
            self.count = 0;
        }
        let doublings = self.count.min(16);
        self.count = self.count.saturating_add(1);
        self.last_at = now;
        (FIRST_WAIT.saturating_mul(1 << doublings).min(WAIT_MAX), self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_bound_and_are_forgotten() {
        let mut tries = Tries::default();
        let mut wait = |second| tries.note_wrong(Duration::from_secs(second)).0.as_millis();
        let waits: Vec<_> = (0..8).map(|_| wait(100)).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(wait(159), 2000);
        assert_eq!(wait(219), 50);
        for _ in 0..100_000 {
            wait(219);
        }
        assert_eq!(wait(219), 2000);
    }
}
