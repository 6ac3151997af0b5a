//! How far the loading of a stamp that was taken is: what of its logs is read, and what remains, for answers,
//! `/ready` and the log; and when it is given up.
//!
//! Some ranges are loaded side by side, and how much log one has is known once its metadata is read: so what
//! remains is in bytes for those that were begun, and in ranges for the others. What always holds: as long as
//! something comes of it, it is not given up, however much there is to read.

use crate::output::progress::time_text;
use crate::stamp::stand_by::Waiting;
use crate::start_progress::number;
use base::Environment;
use futures_util::future::{Either, select};
use stamp::Mark;
use stamp_streams::ReplayProgress;
use std::pin::pin;
use std::time::Duration;

/// How often answers say it anew.
const EVERY: Duration = Duration::from_secs(1);
/// How often the log does, in these.
const TURNS_PER_LINE: u64 = 5;
/// A load of which nothing has come for so long is given up: another process may be able to.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(120);

/// What has come of a load: bytes read, ranges read, the last change of the document.
type Come = (u64, u64, Mark);

/// Since when nothing has come of a load.
struct Still {
    seen: Come,
    /// By the monotonic clock.
    since: Duration,
}

impl Still {
    /// Whether the load is to be given up, which has come so far now.
    fn is_stuck(&mut self, seen: Come, now: Duration) -> bool {
        if seen != self.seen {
            *self = Still { seen, since: now };
        }
        now.saturating_sub(self.since) >= STUCK_AFTER
    }
}

/// Waits for `opening`, and says meanwhile how far it is. None: nothing came of it any more.
pub(super) async fn while_telling<T>(
    waiting: &Waiting,
    env: &Environment,
    replays: &ReplayProgress,
    last_change: impl Fn() -> Mark,
    opening: impl Future<Output = T>,
) -> Option<T> {
    let mut opening = pin!(opening);
    let mut still = Still { seen: (0, 0, last_change()), since: env.clock.monotonic() };
    let mut turn = 0;
    loop {
        turn += 1;
        if let Either::Left((opened, _)) = select(opening.as_mut(), env.clock.sleep(EVERY)).await {
            return Some(opened);
        }
        let ranges =
            ["larimar_start_ranges_read", "larimar_start_ranges"].map(|name| number(&env.metrics, name));
        let come = (replays.read_of_begun().0, ranges[0], last_change());
        if still.is_stuck(come, env.clock.monotonic()) {
            return None;
        }
        let text = text(turn * EVERY.as_secs(), replays.read_of_begun(), ranges);
        match turn % TURNS_PER_LINE {
            0 => waiting.note(text),
            _ => waiting.update(text),
        }
    }
}

fn text(seconds: u64, (read, begun): (u64, u64), [ranges, all]: [u64; 2]) -> String {
    let (read_mib, left_mib) = (read >> 20, (begun - read) >> 20);
    let left = match all.saturating_sub(ranges) {
        0 if all == 0 => format!("{left_mib} MiB of the map of its ranges remain"),
        left_ranges => {
            format!("{left_mib} MiB of the ranges under way and {left_ranges} of {all} ranges remain")
        }
    };
    format!(
        "the stamp was taken {} ago, and its log is being read: {read_mib} MiB are read, {left}",
        time_text(seconds)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use stamp::Incarnation;

    /// A stamp whose log takes longer than the bound was never loaded again: each process gave it up.
    #[test]
    fn a_load_is_given_up_only_after_two_minutes_without_progress() {
        let mark = |counter| Mark::new(Incarnation(1), counter);
        let mut still = Still { seen: (0, 0, mark(0)), since: Duration::ZERO };
        for (second, come, is_stuck) in [
            (119, (0, 0, mark(0)), false),
            // Bytes, ranges, and changes of the document all count.
            (119, (1, 0, mark(0)), false),
            (238, (1, 0, mark(0)), false),
            (238, (1, 1, mark(0)), false),
            (357, (1, 1, mark(1)), false),
            (476, (1, 1, mark(1)), false),
            (477, (1, 1, mark(1)), true),
            // Anew, from where the metrics of an earlier load were.
            (600, (0, 1, mark(1)), false),
            (720, (0, 1, mark(1)), true),
        ] {
            assert_eq!(still.is_stuck(come, Duration::from_secs(second)), is_stuck, "{second} s: {come:?}");
        }
    }

    #[test]
    fn it_says_what_is_read_and_what_remains() {
        assert_eq!(
            text(7, (40 << 20, 52 << 20), [3, 12]),
            "the stamp was taken 7 s ago, and its log is being read: 40 MiB are read, 12 MiB of the ranges \
             under way and 9 of 12 ranges remain"
        );
        assert_eq!(
            text(1, (0, 3 << 20), [0, 0]),
            "the stamp was taken 1 s ago, and its log is being read: 0 MiB are read, 3 MiB of the map of its \
             ranges remain"
        );
    }
}
