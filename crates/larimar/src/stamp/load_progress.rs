//! How far the loading of a stamp that was taken is: what of its logs is read, and what remains, for answers,
//! `/ready` and the log.
//!
//! Ranges are loaded one after the other, and how much log one has is known once its metadata is read: so
//! what remains is in bytes for those that were begun, and in ranges for the others.

use crate::output::progress::time_text;
use crate::stamp::stand_by::Waiting;
use crate::start_progress::number;
use base::Environment;
use futures_util::future::{Either, select};
use stamp_streams::ReplayProgress;
use std::pin::pin;
use std::time::Duration;

/// How often answers say it anew.
const EVERY: Duration = Duration::from_secs(1);
/// How often the log does, in these.
const TURNS_PER_LINE: u64 = 5;

/// Waits for `opening`, and says meanwhile how far it is.
pub(super) async fn while_telling<T>(
    waiting: &Waiting,
    env: &Environment,
    replays: &ReplayProgress,
    opening: impl Future<Output = T>,
) -> T {
    let mut opening = pin!(opening);
    let mut turn = 0;
    loop {
        turn += 1;
        if let Either::Left((opened, _)) = select(opening.as_mut(), env.clock.sleep(EVERY)).await {
            return opened;
        }
        let ranges =
            ["larimar_start_ranges_read", "larimar_start_ranges"].map(|name| number(&env.metrics, name));
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
            format!("{left_mib} MiB of the range under way and {left_ranges} of {all} ranges remain")
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

    #[test]
    fn it_says_what_is_read_and_what_remains() {
        assert_eq!(
            text(7, (40 << 20, 52 << 20), [3, 12]),
            "the stamp was taken 7 s ago, and its log is being read: 40 MiB are read, 12 MiB of the range under \
             way and 9 of 12 ranges remain"
        );
        assert_eq!(
            text(1, (0, 3 << 20), [0, 0]),
            "the stamp was taken 1 s ago, and its log is being read: 0 MiB are read, 3 MiB of the map of its \
             ranges remain"
        );
    }
}
