//! The slow requests of late, for `larimar admin slow` and, with `--log info`, for the log.
//!
//! What always holds: a bounded number is kept.

use parking_lot::Mutex;
use std::collections::VecDeque;

/// Slow requests that are kept.
const SLOW_COUNT_MAX: usize = 128;

/// The slow requests of late, the latest first.
#[derive(Debug, Default)]
pub struct SlowRequests(Mutex<VecDeque<String>>);

impl SlowRequests {
    /// A request was slow; `line` is its line of the access log.
    pub(crate) fn note(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line).into_owned();
        tracing::info!(target: "slow_requests", "{line}");
        let mut kept = self.0.lock();
        kept.truncate(SLOW_COUNT_MAX - 1);
        kept.push_front(line);
    }

    /// Those that are kept, each an object of JSON.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept() {
        let slow = SlowRequests::default();
        (0..300).for_each(|number: u32| slow.note(number.to_string().as_bytes()));
        let lines = slow.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[127].as_str()), (SLOW_COUNT_MAX, "299", "172"));
    }
}
