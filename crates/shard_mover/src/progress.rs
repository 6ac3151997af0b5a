//! How far a move is, as values for those who wait for it.
//!
//! What always holds: rate and rest are of this mover's own time, so a pause before it was started again does
//! not count.

use crate::log::id::MoveId;
use std::time::Duration;

/// What a mover is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It takes rows from the target that the source has not.
    Clearing,
    /// It copies rows.
    Copying,
    /// It reads both sides.
    Verifying,
    /// It deletes rows of a side that has the mapping no more.
    Deleting,
    /// It waits until no writer with an old map, and no former copy, can write any more.
    Waiting,
}

/// How far a move is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The move.
    pub id: MoveId,
    /// What it is at.
    pub phase: Phase,
    /// Rows that are done in this phase.
    pub rows: u64,
    /// Of about so many, as planned; it may be wrong.
    pub of: u64,
    /// Rows a second since the phase began here.
    pub rows_per_second: f64,
    /// How long the phase takes yet, about; none: unknown.
    pub rest: Option<Duration>,
}

/// Takes values of progress. It must not block.
pub type ProgressSink = dyn Fn(Progress) + Send + Sync;

/// A phase that goes on.
pub(crate) struct Meter<'a> {
    id: &'a MoveId,
    phase: Phase,
    of: u64,
    began_at: Duration,
    /// Rows that were done before this mover.
    before: u64,
    sink: &'a ProgressSink,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(id: &'a MoveId, sink: &'a ProgressSink, phase: Phase, of: u64, now: Duration) -> Self {
        Meter { id, phase, of, began_at: now, before: 0, sink }
    }

    /// Rows that a former mover did.
    pub(crate) fn starting_at(mut self, rows: u64) -> Self {
        self.before = rows;
        self
    }

    pub(crate) fn show(&self, rows: u64, now: Duration) {
        let (rows_per_second, rest) = rate(rows.saturating_sub(self.before), self.of.saturating_sub(rows), {
            now.saturating_sub(self.began_at)
        });
        let (id, phase, of) = (self.id.clone(), self.phase, self.of);
        (self.sink)(Progress { id, phase, rows, of, rows_per_second, rest });
    }
}

/// Rows a second, and how long the rest takes at that rate.
fn rate(done: u64, left: u64, spent: Duration) -> (f64, Option<Duration>) {
    let seconds = spent.as_secs_f64();
    if done == 0 || seconds <= 0.0 {
        return (0.0, None);
    }
    let rate = done as f64 / seconds;
    (rate, Duration::try_from_secs_f64(left as f64 / rate).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_rate_says() {
        let second = Duration::from_secs(1);
        for (done, left, spent, expected) in [
            (0, 10, second, (0.0, None)),
            (10, 10, Duration::ZERO, (0.0, None)),
            (10, 20, second, (10.0, Some(2 * second))),
            (10, 0, 2 * second, (5.0, Some(Duration::ZERO))),
        ] {
            assert_eq!(rate(done, left, spent), expected, "{done} {left}");
        }
    }
}
