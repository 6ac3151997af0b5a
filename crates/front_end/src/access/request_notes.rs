//! What is noted of a request while it is answered.
//!
//! What always holds: a note is one relaxed store or addition; of a request inside a request the outer one's
//! name holds.

use super::note::{AccessedRows, Phases};
use base::Clock;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The operation of a request before it is known, and of one that never is.
pub(crate) const UNKNOWN: &str = "unknown";
/// Rows were not counted.
const NO_ROWS: u64 = u64::MAX;

/// A part of a request's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Until it is authenticated.
    Authentication,
    /// Waiting for its account's turn.
    Turn,
    /// Waiting for its body.
    Body,
    /// Everything after it is authenticated, turn and body included.
    Answer,
}

const PHASE_COUNT: usize = 4;

/// What is known of a request so far.
#[derive(Debug)]
pub(crate) struct RequestNotes {
    operation: OnceLock<&'static str>,
    class: OnceLock<&'static str>,
    /// Whether somebody wants to know where the time goes.
    is_timed: bool,
    phases_us: [AtomicU64; PHASE_COUNT],
    rows_read: AtomicU64,
    rows_returned: AtomicU64,
}

impl RequestNotes {
    /// Of a request that has just come.
    pub(crate) fn new(is_timed: bool) -> Self {
        RequestNotes {
            operation: OnceLock::new(),
            class: OnceLock::new(),
            is_timed,
            phases_us: Default::default(),
            rows_read: AtomicU64::new(NO_ROWS),
            rows_returned: AtomicU64::new(0),
        }
    }

    /// The request is for this operation.
    pub(crate) fn note(&self, name: &'static str) {
        // A request inside a request is counted as the outer one.
        let _ = self.operation.set(name);
    }

    /// Its operation's name.
    pub(crate) fn name(&self) -> &'static str {
        self.operation.get().copied().unwrap_or(UNKNOWN)
    }

    /// Its query can touch so much, read and returned so many rows.
    pub(crate) fn note_rows(&self, class: Option<&'static str>, read: u64, returned: u64) {
        if let Some(class) = class {
            let _ = self.class.set(class);
        }
        self.rows_read.store(read, Ordering::Relaxed);
        self.rows_returned.store(returned, Ordering::Relaxed);
    }

    /// How much it can touch, if that was noted.
    pub(crate) fn class(&self) -> Option<&'static str> {
        self.class.get().copied()
    }

    /// Its rows, if they were counted.
    pub(crate) fn rows(&self) -> Option<AccessedRows> {
        let (read, returned) =
            (self.rows_read.load(Ordering::Relaxed), self.rows_returned.load(Ordering::Relaxed));
        (read != NO_ROWS).then_some(AccessedRows { read, returned })
    }

    /// The time now, if somebody wants to know where it goes.
    pub(crate) fn begin(&self, clock: &dyn Clock) -> Option<Duration> {
        self.is_timed.then(|| clock.monotonic())
    }

    /// A phase that began then ends now.
    pub(crate) fn end(&self, phase: Phase, began_at: Option<Duration>, clock: &dyn Clock) {
        if let Some(began_at) = began_at {
            let took = clock.monotonic().saturating_sub(began_at).as_micros() as u64;
            self.phases_us[phase as usize].fetch_add(took, Ordering::Relaxed);
        }
    }

    /// Where the time went, of this much in all.
    pub(crate) fn phases(&self, total: Duration) -> Phases {
        let of = |phase: Phase| Duration::from_micros(self.phases_us[phase as usize].load(Ordering::Relaxed));
        let (turn, body) = (of(Phase::Turn), of(Phase::Body));
        let work = of(Phase::Answer).saturating_sub(turn + body);
        Phases { total, authentication: of(Phase::Authentication), turn, body, work }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BoxFuture, Ticks};

    /// A clock that goes on by a millisecond with each look.
    #[derive(Default)]
    struct StepClock(AtomicU64);

    impl Clock for StepClock {
        fn now(&self) -> Ticks {
            Ticks(0)
        }
        fn monotonic(&self) -> Duration {
            Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            unreachable!("nobody waits")
        }
    }

    #[test]
    fn time_is_divided_into_phases_and_looked_at_only_if_wanted() {
        let clock = StepClock::default();
        let notes = RequestNotes::new(true);
        let authenticating = notes.begin(&clock);
        notes.end(Phase::Authentication, authenticating, &clock);
        let answering = notes.begin(&clock);
        for phase in [Phase::Turn, Phase::Body, Phase::Body] {
            let began_at = notes.begin(&clock);
            notes.end(phase, began_at, &clock);
        }
        notes.end(Phase::Answer, answering, &clock);
        let ms = Duration::from_millis;
        let phases = notes.phases(ms(20));
        let expected = Phases { total: ms(20), authentication: ms(1), turn: ms(1), body: ms(2), work: ms(4) };
        assert_eq!(phases, expected);
        let looks = clock.0.load(Ordering::Relaxed);
        let unwanted = RequestNotes::new(false);
        let began_at = unwanted.begin(&clock);
        unwanted.end(Phase::Answer, began_at, &clock);
        assert_eq!((unwanted.phases(ms(1)).work, clock.0.load(Ordering::Relaxed)), (ms(0), looks));
    }

    #[test]
    fn the_outer_operation_is_noted_and_rows_where_they_are_counted() {
        let notes = RequestNotes::new(false);
        assert_eq!((notes.name(), notes.class(), notes.rows()), (UNKNOWN, None, None));
        notes.note("EntityGroupTransaction");
        notes.note("GetEntity");
        notes.note_rows(Some("point"), 1, 0);
        assert_eq!((notes.name(), notes.class()), ("EntityGroupTransaction", Some("point")));
        assert_eq!(notes.rows(), Some(AccessedRows { read: 1, returned: 0 }));
    }
}
