//! Which ranges are quiet: no changes went from memory into a checkpoint there for a while, because few were made.
//!
//! In a quiet range merges take time from nobody, so fewer checkpoints are worth one: reads, and walks above all, ask
//! fewer then, however large the range is.

use crate::retries::RangeName;
use std::collections::BTreeMap;
use std::time::Duration;

/// A range is quiet so long after its last flush. One that is written to fast flushes every few seconds.
const QUIET_AFTER: Duration = Duration::from_secs(10);

/// When ranges were last seen to flush.
#[derive(Default)]
pub(crate) struct QuietRanges {
    /// What counts flushes, and since when it has stood still.
    seen: BTreeMap<RangeName, (u64, Duration)>,
}

impl QuietRanges {
    /// How long it is from `now` until the range is quiet, if it does not flush again; zero: it is. `epoch` rises with each
    /// flush. A range that was not seen before may have flushed just now.
    pub(crate) fn quiet_in(&mut self, range: RangeName, epoch: u64, now: Duration) -> Duration {
        let (known, since) = self.seen.entry(range).or_insert((epoch, now));
        if *known != epoch {
            (*known, *since) = (epoch, now);
        }
        (*since + QUIET_AFTER).saturating_sub(now)
    }

    /// Forgets the others.
    pub(crate) fn keep(&mut self, is_known: impl Fn(RangeName) -> bool) {
        self.seen.retain(|range, _| is_known(*range));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::ObjectTable::{Blob, Entity};

    #[test]
    fn a_range_is_quiet_when_it_has_not_flushed_for_long() {
        let mut ranges = QuietRanges::default();
        let seconds = Duration::from_secs;
        for (range, epoch, now, quiet_in) in [
            ((Blob, 1), 7, 100, 10),
            ((Blob, 1), 7, 104, 6),
            ((Entity, 1), 7, 104, 10),
            ((Blob, 1), 8, 109, 10),
            ((Blob, 1), 8, 118, 1),
            ((Entity, 1), 7, 118, 0),
            ((Blob, 1), 8, 119, 0),
            ((Blob, 1), 8, 1000, 0),
            ((Blob, 1), 9, 1000, 10),
        ] {
            let now = seconds(now);
            assert_eq!(ranges.quiet_in(range, epoch, now), seconds(quiet_in), "{range:?} at {now:?}");
        }
        ranges.keep(|range| range == (Blob, 1));
        assert_eq!(ranges.quiet_in((Blob, 1), 9, seconds(1010)), seconds(0));
        assert_eq!(ranges.quiet_in((Entity, 1), 7, seconds(1010)), seconds(10), "it is forgotten");
    }
}
