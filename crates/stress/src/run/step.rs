//! What came of a step: plain data, and what follows from it.

use crate::measure::latency::{Latencies, Percentiles};
use crate::measure::tally::Tally;
use crate::plan::{Pace, StepRole};
use crate::workload::operation::OperationKind;
use std::time::Duration;

/// Counts of a kind of operation within the counted time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) done: u64,
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

/// A step that has ended.
#[derive(Clone, Debug)]
pub(crate) struct StepResult {
    pub(crate) role: StepRole,
    pub(crate) pace: Pace,
    pub(crate) counted_for: Duration,
    /// By kind, within that time.
    pub(crate) counted: Vec<(OperationKind, Counted)>,
    /// The same and what ended in the moment after it.
    pub(crate) tally: Tally,
    /// Requests that were due and not begun.
    pub(crate) unbegun: u64,
    /// Latencies of all operations, and waits of those that were not begun.
    pub(crate) latencies: Latencies,
    /// Processor time of this process, if it is known.
    pub(crate) processor_time: Option<Duration>,
}

/// A second of a run, or what was left of it at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Its end, from the run's beginning, without warm-ups.
    pub at_s: f64,
    /// Operations done a second.
    pub done_per_s: f64,
    /// Items a second.
    pub items_per_s: f64,
    /// Operations that failed, a second.
    pub failed_per_s: f64,
    /// Attempts that were followed by another, a second.
    pub repeated_per_s: f64,
    /// Latencies.
    pub percentiles: Percentiles,
}

/// What this program's own work cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnTime {
    /// Processor time for each operation of the last step, in microseconds.
    pub us_per_operation: f64,
    /// The share of its threads' time.
    pub share: f64,
}

/// A server has kept up if it did that share of what was due.
const KEPT_UP_SHARE: f64 = 0.98;
/// And if no larger share of the operations failed.
const FAILED_SHARE_MAX: f64 = 0.01;

impl StepResult {
    pub(crate) fn all(&self) -> Counted {
        self.counted.iter().fold(Counted::default(), |all, (_, one)| Counted {
            done: all.done + one.done,
            items: all.items + one.items,
            bytes: all.bytes + one.bytes,
        })
    }

    pub(crate) fn per_second(&self, count: u64) -> f64 {
        per_second(count, self.counted_for)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.tally.kinds().map(|(_, kind)| kind.failed).sum()
    }

    pub(crate) fn unfinished(&self) -> u64 {
        self.unbegun + self.tally.kinds().map(|(_, kind)| kind.unfinished).sum::<u64>()
    }

    /// What this program's own work cost, on so many threads.
    pub(crate) fn own_time(&self, workers: u64) -> Option<OwnTime> {
        let (used, done) = (self.processor_time?, self.all().done);
        let available = self.counted_for.as_secs_f64() * workers as f64;
        (done > 0 && available > 0.0).then(|| OwnTime {
            us_per_operation: used.as_secs_f64() * 1e6 / done as f64,
            share: used.as_secs_f64() / available,
        })
    }

    /// Whether the server did what was due; under a closed loop nothing is.
    pub(crate) fn has_kept_up(&self) -> bool {
        let done = self.all().done;
        let is_fast = match self.pace {
            Pace::Closed => true,
            Pace::Open(rate) => self.per_second(done) >= rate * KEPT_UP_SHARE,
        };
        is_fast && self.failed() as f64 <= (done + self.failed()) as f64 * FAILED_SHARE_MAX
    }
}

pub(crate) fn per_second(count: u64, span: Duration) -> f64 {
    if span.is_zero() { 0.0 } else { count as f64 / span.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(pace: Pace, done: u64, failed: u64) -> StepResult {
        let mut tally = Tally::new(1);
        tally.of(OperationKind::Get).failed = failed;
        StepResult {
            role: StepRole::Main,
            pace,
            counted_for: Duration::from_secs(2),
            counted: vec![(OperationKind::Get, Counted { done, items: done, bytes: 0 })],
            tally,
            unbegun: 0,
            latencies: Latencies::new(),
            processor_time: None,
        }
    }

    #[test]
    fn a_server_that_does_what_is_due_has_kept_up() {
        for (pace, done, failed, expected) in [
            (Pace::Open(100.0), 200, 0, true),
            (Pace::Open(100.0), 197, 0, true),
            (Pace::Open(100.0), 190, 0, false),
            (Pace::Open(100.0), 200, 2, true),
            (Pace::Open(100.0), 200, 3, false),
            (Pace::Closed, 1, 0, true),
            (Pace::Closed, 0, 1, false),
        ] {
            assert_eq!(result(pace, done, failed).has_kept_up(), expected, "{pace:?} {done} {failed}");
        }
        assert_eq!(result(Pace::Closed, 10, 0).per_second(10), 5.0);
        assert_eq!(per_second(1, Duration::ZERO), 0.0);
    }
}
