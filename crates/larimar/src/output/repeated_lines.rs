//! Lines of the log that come again and again: a disk without space, or a range that takes no writes, refuses
//! thousands of requests a second, and each logs the same line.
//!
//! What always holds: a line that differs from those before is always logged; of equal ones one in each
//! [`IDLE_FOR`], with the number of those that were left out since the last, as long as it is remembered.

use std::time::Duration;

/// An equal line is left out for so long.
const IDLE_FOR: Duration = Duration::from_secs(10);
/// Lines that are remembered; then the one that was logged longest ago is evicted.
const REMEMBERED_LINES_MAX: usize = 64;

struct LoggedLine {
    line: String,
    at: Duration,
    left_out_count: u64,
}

/// The lines that were logged a short while ago.
#[derive(Default)]
pub(crate) struct RepeatedLines {
    lines: Vec<LoggedLine>,
}

impl RepeatedLines {
    /// Whether `line` is logged at `now`, and then how many equal ones were left out since the last; `None`:
    /// it is left out.
    pub(crate) fn admit(&mut self, line: &str, now: Duration) -> Option<u64> {
        if let Some(logged) = self.lines.iter_mut().find(|logged| logged.line == line) {
            if now.saturating_sub(logged.at) < IDLE_FOR {
                logged.left_out_count += 1;
                return None;
            }
            logged.at = now;
            return Some(std::mem::take(&mut logged.left_out_count));
        }
        if self.lines.len() == REMEMBERED_LINES_MAX
            && let Some((oldest, _)) = self.lines.iter().enumerate().min_by_key(|(_, logged)| logged.at)
        {
            self.lines.swap_remove(oldest);
        }
        self.lines.push(LoggedLine { line: line.to_owned(), at: now, left_out_count: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_logged_once_in_a_while_with_the_number_left_out() {
        let mut lines = RepeatedLines::default();
        let at = |millis| Duration::from_millis(millis);
        for (now, line, expected) in [
            (0, "full", Some(0)),
            (1, "full", None),
            (2, "damaged", Some(0)),
            (9_999, "full", None),
            (10_000, "full", Some(2)),
            (10_001, "damaged", None),
            (20_000, "full", Some(0)),
            (20_001, "damaged", Some(1)),
        ] {
            assert_eq!(lines.admit(line, at(now)), expected, "{line} at {now}");
        }
    }

    #[test]
    fn few_lines_are_remembered_and_new_ones_are_always_logged() {
        let mut lines = RepeatedLines::default();
        for index in 0..1000 {
            assert_eq!(lines.admit(&index.to_string(), Duration::from_millis(index)), Some(0));
            assert!(lines.lines.len() <= REMEMBERED_LINES_MAX);
        }
        assert_eq!(lines.admit("999", Duration::from_secs(1)), None);
        assert_eq!(lines.admit("0", Duration::from_secs(1)), Some(0));
    }
}
