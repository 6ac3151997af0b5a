//! When background work of a range that failed is tried again: a pure schedule beside what is remembered of
//! each range.
//!
//! What always holds: the pause doubles from failure to failure up to a bound, because each try writes much
//! anew; what a full disk or a want of file descriptors stops is tried again sooner, because writers wait for
//! it; the first failure and each other one after it are worth a line in the log, the same one again is not.

use crate::error::PartitionError;
use crate::operation::ObjectTable;
use std::collections::BTreeMap;
use std::time::Duration;

/// After the first failure.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// After many.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// While the disk is full, or no file can be opened.
const REFUSED_RETRY_AFTER: Duration = Duration::from_millis(100);
const REFUSED_RETRY_AFTER_MAX: Duration = Duration::from_secs(2);
/// Doublings beyond the longest pause.
const DOUBLING_COUNT_MAX: u32 = 7;

/// A range, by table and id.
pub(crate) type RangeName = (ObjectTable, u64);

struct Failing {
    count: u32,
    again_at: Duration,
    error: PartitionError,
}

/// The ranges whose work of one kind failed when it was last tried.
#[derive(Default)]
pub(crate) struct Retries {
    failing: BTreeMap<RangeName, Failing>,
}

/// How long to wait after `count` failures in a row, the last of which was `error`.
fn retry_after(count: u32, error: &PartitionError) -> Duration {
    let (first, longest) = match error {
        refused if refused.is_refusal() => (REFUSED_RETRY_AFTER, REFUSED_RETRY_AFTER_MAX),
        _ => (RETRY_AFTER, RETRY_AFTER_MAX),
    };
    (first * 2u32.pow(count.saturating_sub(1).min(DOUBLING_COUNT_MAX))).min(longest)
}

impl Retries {
    /// Why the range's work waits, and for how long from `now` on; `None`: it does not.
    pub(crate) fn waiting(&self, range: RangeName, now: Duration) -> Option<(&PartitionError, Duration)> {
        let failing = self.failing.get(&range)?;
        let wait_for = failing.again_at.checked_sub(now).filter(|wait_for| !wait_for.is_zero())?;
        Some((&failing.error, wait_for))
    }

    /// The work has failed. Returns the pause, and whether that is news.
    pub(crate) fn failed(
        &mut self,
        range: RangeName,
        error: &PartitionError,
        now: Duration,
    ) -> (Duration, bool) {
        let before = self.failing.get(&range);
        let count = before.map_or(0, |failing| failing.count) + 1;
        let is_news = before.is_none_or(|failing| failing.error != *error);
        let pause = retry_after(count, error);
        self.failing.insert(range, Failing { count, again_at: now + pause, error: error.clone() });
        (pause, is_news)
    }

    /// The work was done. Returns whether it had failed before.
    pub(crate) fn succeeded(&mut self, range: RangeName) -> bool {
        self.failing.remove(&range).is_some()
    }

    /// Forgets ranges that are gone.
    pub(crate) fn keep(&mut self, is_there: impl Fn(RangeName) -> bool) {
        self.failing.retain(|range, _| is_there(*range));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: RangeName = (ObjectTable::Entity, 3);

    fn broken(what: &str) -> PartitionError {
        PartitionError::Storage(what.to_owned())
    }

    #[test]
    fn pauses_double_up_to_their_bound() {
        let pauses = |error: PartitionError| -> Vec<u64> {
            (1..=10).map(|count| retry_after(count, &error).as_millis() as u64).collect()
        };
        let for_good = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000];
        assert_eq!(pauses(broken("block")), for_good);
        for refused in [PartitionError::DiskFull, PartitionError::OutOfFiles("no more".to_owned())] {
            assert_eq!(pauses(refused)[..7], [100, 200, 400, 800, 1600, 2000, 2000]);
        }
        assert_eq!(retry_after(u32::MAX, &broken("block")), RETRY_AFTER_MAX);
    }

    #[test]
    fn a_failure_waits_and_is_told_once() {
        let mut retries = Retries::default();
        let at = Duration::from_secs(100);
        assert_eq!(retries.failed(RANGE, &broken("one"), at), (RETRY_AFTER, true));
        assert_eq!(retries.waiting(RANGE, at), Some((&broken("one"), RETRY_AFTER)));
        assert_eq!(retries.waiting((ObjectTable::Entity, 4), at), None, "others don't wait");
        let later = at + RETRY_AFTER;
        assert_eq!(retries.waiting(RANGE, later), None);
        assert_eq!(retries.failed(RANGE, &broken("one"), later), (2 * RETRY_AFTER, false));
        assert!(retries.failed(RANGE, &broken("two"), later).1, "another failure is news");
        assert!(retries.succeeded(RANGE) && !retries.succeeded(RANGE));
        assert_eq!(retries.failed(RANGE, &broken("two"), later), (RETRY_AFTER, true));
        retries.keep(|range| range != RANGE);
        assert_eq!(retries.waiting(RANGE, later), None);
    }
}
