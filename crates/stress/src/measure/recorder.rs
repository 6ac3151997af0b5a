//! Where the clients of one worker count, and the conductor reads.
//!
//! What always holds: an operation that began is counted once, whether it ends or is dropped.

use super::errors::was_done_before;
use super::tally::Tally;
use crate::workload::operation::OperationKind;
use base::Clock;
use parking_lot::Mutex;
use std::fmt;
use std::time::Duration;
use storage_client::{Error, RepeatedAttempt, RetryObserver};

/// The counts of one worker. Its clients run on one thread, so the lock is free but for the conductor's
/// looks.
pub(crate) struct Recorder {
    tally: Mutex<Tally>,
}

/// How an operation ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What was done, which may differ from what was drawn: a deletion without a message becomes a receive.
    pub(crate) kind: OperationKind,
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    /// The place whose load it is.
    pub(crate) place: Option<usize>,
    pub(crate) failure: Option<Failure>,
}

/// Why an operation was not done.
#[derive(Debug)]
pub(crate) enum Failure {
    Client(Error),
    /// It was answered, but not with what was asked for.
    Wrong(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Client(error)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl RetryObserver for Recorder {
    fn ended(&self, _operation: &'static str, repeated: &[RepeatedAttempt], end: Result<(), &Error>) {
        let is_done = end.is_ok() || end.is_err_and(was_done_before);
        self.tally.lock().errors.repeated(repeated, is_done);
    }
}

impl Recorder {
    /// With so many places whose load is counted apart.
    pub(crate) fn new(places: u64) -> Self {
        Recorder { tally: Mutex::new(Tally::new(places)) }
    }

    /// Moves what was counted since the last time to `others`.
    pub(crate) fn drain(&self, others: &mut Tally) {
        self.tally.lock().move_to(others);
    }

    /// Keys that are about to be inserted, a group with its first key.
    pub(crate) fn inserts(&self, partition: &str, row: &str, count: u64) {
        self.tally.lock().keys.inserted(partition, row, count);
    }

    fn ended(&self, latency: Duration, outcome: &Outcome) {
        let mut tally = self.tally.lock();
        match &outcome.failure {
            None => tally.heat.count(outcome.place, outcome.items),
            Some(Failure::Client(error)) => tally.errors.failed(error),
            Some(Failure::Wrong(what)) => tally.errors.wrong(what),
        }
        let kind = tally.of(outcome.kind);
        kind.latencies.record(latency);
        if outcome.failure.is_some() {
            kind.failed += 1;
            return;
        }
        kind.done += 1;
        kind.items += outcome.items;
        kind.bytes += outcome.bytes;
        kind.empty += u64::from(outcome.items == 0);
    }
}

/// An operation that has begun.
pub(crate) struct InFlight<'a> {
    recorder: &'a Recorder,
    clock: &'a dyn Clock,
    kind: OperationKind,
    /// From when its latency counts.
    from: Duration,
    is_ended: bool,
}

impl<'a> InFlight<'a> {
    pub(crate) fn begin(
        recorder: &'a Recorder,
        clock: &'a dyn Clock,
        kind: OperationKind,
        from: Duration,
    ) -> Self {
        InFlight { recorder, clock, kind, from, is_ended: false }
    }

    fn latency(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.from)
    }

    pub(crate) fn end(mut self, outcome: &Outcome) {
        self.is_ended = true;
        self.recorder.ended(self.latency(), outcome);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            let latency = self.latency();
            self.recorder.tally.lock().waited(self.kind, latency, 1);
        }
    }
}
