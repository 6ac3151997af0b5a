//! What is being done, on standard error: a line that is written over again and again if that is a terminal,
//! else lines now and then.
//!
//! What always holds: what takes less than two seconds prints nothing but on a terminal; what can't be shown
//! is no reason to stop.

use base::Clock;
use base::system::SystemClock;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Columns of a bar.
const BAR_WIDTH: u64 = 30;
/// Characters of a line that are shown.
const LINE_LEN_MAX: usize = 100;
/// Without a terminal the first line comes after so long, and the next ones at such distances.
const PLAIN_FROM: Duration = Duration::from_secs(2);
const PLAIN_EVERY: Duration = Duration::from_secs(10);
/// A bar on a terminal is written anew this often.
const BAR_EVERY: Duration = Duration::from_millis(200);

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// On one line that is written over.
    Terminal,
    /// As lines now and then.
    Plain,
    Not,
}

/// What is being done.
pub(crate) struct Progress {
    shown: Shown,
    clock: SystemClock,
    began_at: Duration,
    /// When the measured part began, and of how much.
    part: Option<(Duration, u64)>,
    last_at: Option<Duration>,
    /// Whether a line stands there to be written over.
    is_line: bool,
}

impl Progress {
    /// On a terminal only.
    pub(crate) fn new() -> Self {
        Progress::shown(if std::io::stderr().is_terminal() { Shown::Terminal } else { Shown::Not })
    }

    /// Also as plain lines where standard error is no terminal; `is_quiet`: not at all.
    pub(crate) fn with_plain_lines(is_quiet: bool) -> Self {
        Progress::shown(match std::io::stderr().is_terminal() {
            _ if is_quiet => Shown::Not,
            true => Shown::Terminal,
            false => Shown::Plain,
        })
    }

    fn shown(shown: Shown) -> Self {
        let clock = SystemClock::new();
        let began_at = clock.monotonic();
        Progress { shown, clock, began_at, part: None, last_at: None, is_line: false }
    }

    /// Bytes that were read, and all there are.
    pub(crate) fn bar(&mut self, read: u64, all: u64) {
        let now = self.clock.monotonic();
        let part = match self.part {
            Some((began_at, of)) if of == all => began_at,
            _ => {
                self.part = Some((now, all));
                now
            }
        };
        if is_due(self.shown, self.began_at, self.last_at, now) {
            self.last_at = Some(now);
            let text = bar_text(read, all, now.saturating_sub(part));
            self.put(&text);
        }
    }

    /// What is being done.
    pub(crate) fn line(&mut self, text: &str) {
        self.part = None;
        let now = self.clock.monotonic();
        if self.shown == Shown::Terminal || is_due(self.shown, self.began_at, self.last_at, now) {
            self.last_at = Some(now);
            self.put(text);
        }
    }

    fn put(&mut self, text: &str) {
        let text: String = text.chars().take(LINE_LEN_MAX).collect();
        let mut out = std::io::stderr().lock();
        let _ = match self.shown {
            Shown::Terminal => write!(out, "\r\x1b[K{text}"),
            Shown::Plain => writeln!(out, "{text}"),
            Shown::Not => Ok(()),
        };
        self.is_line = self.shown == Shown::Terminal;
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        self.part = None;
        if std::mem::take(&mut self.is_line) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Whether something is shown at `now` that is measured all the time.
fn is_due(shown: Shown, began_at: Duration, last_at: Option<Duration>, now: Duration) -> bool {
    let since = |at: Option<Duration>| at.map(|at| now.saturating_sub(at));
    match shown {
        Shown::Not => false,
        Shown::Terminal => since(last_at).is_none_or(|since| since >= BAR_EVERY),
        Shown::Plain => match since(last_at) {
            None => now.saturating_sub(began_at) >= PLAIN_FROM,
            Some(since) => since >= PLAIN_EVERY,
        },
    }
}

/// A bar with its rate and the time that is left, after so long.
fn bar_text(read: u64, all: u64, took: Duration) -> String {
    let read = read.min(all);
    let filled = (u128::from(read) * u128::from(BAR_WIDTH)).checked_div(u128::from(all));
    let filled = filled.map_or(BAR_WIDTH, |filled| filled as u64) as usize;
    let (done, left) = ("#".repeat(filled), ".".repeat(BAR_WIDTH as usize - filled));
    let mut text = format!("[{done}{left}] {} of {} MiB", read >> 20, all >> 20);
    let per_second = u128::from(read) * 1000 / took.as_millis().max(1);
    // In the first second it says nothing.
    if took >= Duration::from_secs(1) && per_second > 0 {
        let seconds = (u128::from(all - read)).div_ceil(per_second);
        text.push_str(&format!(", {} MiB/s, {} left", per_second >> 20, time_text(seconds as u64)));
    }
    text
}

/// Seconds as people say them.
pub(crate) fn time_text(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_a_rate_and_a_rest() {
        let mib = |count: u64| count << 20;
        for (read, all, seconds, expected) in [
            (0, 0, 0, "[##############################] 0 of 0 MiB"),
            (0, mib(10), 5, "[..............................] 0 of 10 MiB"),
            (mib(5), mib(10), 0, "[###############...............] 5 of 10 MiB"),
            (mib(5), mib(10), 5, "[###############...............] 5 of 10 MiB, 1 MiB/s, 5 s left"),
            (
                mib(100),
                mib(100_100),
                10,
                "[..............................] 100 of 100100 MiB, 10 MiB/s, 2 h left",
            ),
            (mib(12), mib(10), 2, "[##############################] 10 of 10 MiB, 5 MiB/s, 0 s left"),
        ] {
            assert_eq!(bar_text(read, all, Duration::from_secs(seconds)), expected);
        }
        assert_eq!([119, 120, 7199, 7200].map(time_text), ["119 s", "2 min", "119 min", "2 h"]);
    }

    #[test]
    fn plain_lines_come_late_and_seldom() {
        let seconds = Duration::from_secs;
        for (shown, last_at, now, expected) in [
            (Shown::Not, None, 100, false),
            (Shown::Plain, None, 1, false),
            (Shown::Plain, None, 2, true),
            (Shown::Plain, Some(2), 11, false),
            (Shown::Plain, Some(2), 12, true),
            (Shown::Terminal, None, 0, true),
            (Shown::Terminal, Some(5), 5, false),
            (Shown::Terminal, Some(5), 6, true),
        ] {
            let due = is_due(shown, seconds(0), last_at.map(seconds), seconds(now));
            assert_eq!(due, expected, "{shown:?} {last_at:?} {now}");
        }
    }
}
