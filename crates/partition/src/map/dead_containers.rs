//! Containers that their services have deleted: no name leads to their rows any more, and their ids never
//! come back. What is left to do is to forget the rows when checkpoints are written anyway.
//!
//! Any number of them may be marked: the marks stay rows (`container_marks`), and walks over rows read them
//! beside the rows (`dead_filter`). In memory there is only how many there are. A container without rows
//! needs no mark. Those that were deleted lately are looked at once more, because a request that found one
//! before it was deleted may still write.
//!
//! What always holds: a mark is durable before rows are dropped for it, and stays until no range holds rows
//! of its container. Rows may be dropped here and there in any order: they are never read.

use super::container_marks::{DeadContainer, MarkRows, index_of};
use super::dead_filter::DeadFilter;
use crate::operation::{OBJECT_TABLES, ObjectTable};
use base::clock::TICKS_PER_SECOND;
use base::{Clock, Ticks};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A mark stays so long at least: requests that found the container before it was deleted may still write.
const MARK_AGE_MIN: Duration = Duration::from_secs(120);
/// So long after a mark rows that are only in memory are sent on their way to a checkpoint, which lacks them.
const FLUSH_AGE_MIN: Duration = Duration::from_secs(60);
/// A mark that is still there so long after it was set waits for a checkpoint that nothing else rewrites.
const STAYED_AGE_MIN: Duration = Duration::from_secs(600);
/// Containers deleted lately that are looked at once more. What is written into others is found by the
/// services' search.
const WATCHED_COUNT_MAX: usize = 16_384;

/// All deleted containers, as they are known to flushes and compactions.
#[derive(Default)]
pub(crate) struct DeadContainers {
    /// `None`: there are none.
    marks: Option<Arc<dyn MarkRows>>,
    /// Marks that a walk has in memory at a time.
    at_hand_max: usize,
    since_start: SteadyTime,
    of_tables: [OfTable; OBJECT_TABLES.len()],
    /// Those deleted lately, with the monotonic time at which they are looked at once more; a bounded number.
    watched: Mutex<VecDeque<(DeadContainer, Duration)>>,
}

/// What is known of the marks of one table.
#[derive(Default)]
struct OfTable {
    /// How many there are, or are about to be.
    count: AtomicU64,
    /// How many are about to be.
    expected: AtomicU64,
    /// Rises whenever one that was expected is set, or is not.
    changes: AtomicU64,
    /// How many have stayed for long.
    stayed: AtomicU64,
    /// Rows before this key were looked for in this pass over the marks, and what it has found.
    pass: Mutex<Pass>,
}

/// A pass over all marks of a table, which looks for those that may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Where it goes on.
    pub(crate) from: Bytes,
    /// Marks that it has found and left.
    pub(crate) left: u64,
    /// Of these, those that have stayed for long.
    pub(crate) stayed: u64,
    /// The changes before it began; `None`: one was under way.
    changes: Option<u64>,
}

/// A mark that is about to be set.
pub(crate) struct Expected<'a>(&'a OfTable);

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        self.0.expected.fetch_sub(1, Ordering::AcqRel);
    }
}

impl OfTable {
    /// The changes, if none is under way.
    fn settled_changes(&self) -> Option<u64> {
        (self.expected.load(Ordering::Acquire) == 0).then(|| self.changes.load(Ordering::Acquire))
    }
}

/// The wall clock's time at the start, and the monotonic time since: it does not jump.
#[derive(Clone, Copy, Debug, Default)]
struct SteadyTime {
    start: Ticks,
    monotonic_start: Duration,
}

impl SteadyTime {
    fn at(self, monotonic: Duration) -> Ticks {
        self.start.plus(monotonic.saturating_sub(self.monotonic_start))
    }
}

/// What is to be done with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age {
    /// Rows that are only in memory are to be flushed.
    pub(crate) flushes: bool,
    /// It goes if no range holds rows of its container.
    pub(crate) may_go: bool,
    /// It has stayed for long.
    pub(crate) has_stayed: bool,
}

/// What is to be done with a mark of `since`, `now`, in a process that began at `start`. Marks of this
/// process are made by the same time. One from the future was made by another one under a clock that was
/// ahead: it counts as if it had been made at the start, or it would stay until the clock is there again. If
/// the clock gets there first, its age begins anew then: so it may go two ages after the start at the latest.
fn age_of(since: Ticks, start: Ticks, now: Ticks) -> Age {
    let from = if since > now { start } else { since };
    let age = Duration::from_secs(now.0.saturating_sub(from.0) / TICKS_PER_SECOND);
    Age { flushes: age >= FLUSH_AGE_MIN, may_go: age >= MARK_AGE_MIN, has_stayed: age >= STAYED_AGE_MIN }
}

impl DeadContainers {
    /// Those whose marks these are, of which each table has so many; a walk may have `at_hand_max` of them in
    /// memory.
    pub(crate) fn new(
        marks: Arc<dyn MarkRows>,
        counts: [u64; OBJECT_TABLES.len()],
        at_hand_max: usize,
        clock: &dyn Clock,
    ) -> Self {
        let of_table = |count: u64| OfTable { count: AtomicU64::new(count), ..OfTable::default() };
        let since_start = SteadyTime { start: clock.now(), monotonic_start: clock.monotonic() };
        let (of_tables, watched) = (counts.map(of_table), Mutex::default());
        DeadContainers { marks: Some(marks), at_hand_max, since_start, of_tables, watched }
    }

    fn of(&self, table: ObjectTable) -> Option<&OfTable> {
        index_of(table).map(|index| &self.of_tables[index])
    }

    /// Where the marks are.
    pub(crate) fn marks(&self) -> Option<&Arc<dyn MarkRows>> {
        self.marks.as_ref()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.of_tables.iter().map(|of_table| of_table.count.load(Ordering::Acquire)).sum()
    }

    /// How many there are of one table.
    pub(crate) fn count_of(&self, table: ObjectTable) -> u64 {
        self.of(table).map_or(0, |of_table| of_table.count.load(Ordering::Acquire))
    }

    /// Rises with each mark of the table that is set, and sometimes besides.
    pub(crate) fn changes_of(&self, table: ObjectTable) -> u64 {
        self.of(table).map_or(0, |of_table| of_table.changes.load(Ordering::Acquire))
    }

    /// How many marks of the table had stayed for long when it was looked last.
    pub(crate) fn stayed_count_of(&self, table: ObjectTable) -> u64 {
        self.of(table).map_or(0, |of_table| of_table.stayed.load(Ordering::Relaxed))
    }

    /// The time that marks are made with.
    pub(crate) fn time(&self, clock: &dyn Clock) -> Ticks {
        self.since_start.at(clock.monotonic())
    }

    /// What is to be done with a mark of `since`.
    pub(crate) fn age_of(&self, since: Ticks, clock: &dyn Clock) -> Age {
        age_of(since, self.since_start.start, self.time(clock))
    }

    /// A mark is about to be set: walks look for it from now on. What is returned is dropped when it is, or
    /// when it is known not to be.
    pub(crate) fn expect(&self, table: ObjectTable) -> Option<Expected<'_>> {
        let of_table = self.of(table)?;
        of_table.expected.fetch_add(1, Ordering::AcqRel);
        of_table.count.fetch_add(1, Ordering::AcqRel);
        Some(Expected(of_table))
    }

    /// So many marks of the table are gone, or were expected and not set.
    pub(crate) fn note_gone(&self, table: ObjectTable, gone: u64) {
        if let Some(of_table) = self.of(table) {
            let less = |count: u64| Some(count.saturating_sub(gone));
            let _ = of_table.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        }
    }

    /// Where the pass over the table's marks goes on.
    pub(crate) fn pass_of(&self, table: ObjectTable) -> Pass {
        let Some(of_table) = self.of(table) else { return Pass::default() };
        let pass = of_table.pass.lock().clone();
        match pass.from.is_empty() {
            true => Pass { changes: of_table.settled_changes(), ..Pass::default() },
            false => pass,
        }
    }

    /// The pass goes on from there in the next round, or has come to its end.
    pub(crate) fn set_pass(&self, table: ObjectTable, pass: Pass, is_at_end: bool) {
        let Some(of_table) = self.of(table) else { return };
        if is_at_end {
            of_table.stayed.store(pass.stayed, Ordering::Relaxed);
            // A request that went away while it was setting a mark has left a count that is too high.
            if pass.changes.is_some() && of_table.settled_changes() == pass.changes {
                of_table.count.fetch_min(pass.left, Ordering::AcqRel);
            }
        }
        *of_table.pass.lock() = if is_at_end { Pass::default() } else { pass };
    }

    /// The container is looked at once more.
    pub(crate) fn watch(&self, dead: DeadContainer, clock: &dyn Clock) {
        let mut watched = self.watched.lock();
        if watched.len() == WATCHED_COUNT_MAX {
            watched.pop_front();
        }
        watched.push_back((dead, clock.monotonic() + MARK_AGE_MIN));
    }

    /// The next one that is to be looked at once more by now.
    pub(crate) fn next_watched(&self, clock: &dyn Clock) -> Option<DeadContainer> {
        let mut watched = self.watched.lock();
        watched.pop_front_if(|(_, at)| *at <= clock.monotonic()).map(|(dead, _)| dead)
    }

    /// What recognizes the dead rows of one table, for one walk over them.
    pub(crate) fn filter(&self, table: ObjectTable) -> DeadFilter {
        match &self.marks {
            Some(marks) if self.count_of(table) > 0 => {
                DeadFilter::over(marks.clone(), table, self.at_hand_max)
            }
            _ => DeadFilter::none(table),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_is_read_stays_for_what_is_left_of_its_time() {
        let seconds = |seconds: u64| Ticks(seconds * TICKS_PER_SECOND);
        for (since, start, now, flushes, may_go, has_stayed) in [
            (1000, 1000, 1000, false, false, false),
            (1000, 900, 1059, false, false, false),
            (1000, 900, 1060, true, false, false),
            (1000, 900, 1119, true, false, false),
            (1000, 900, 1120, true, true, false),
            (1000, 900, 1600, true, true, true),
            // Of a process before.
            (1000, 1100, 1110, true, false, false),
            (1000, 9999, 9999, true, true, true),
            // From the future.
            (1001, 1000, 1000, false, false, false),
            (5000, 1000, 1119, true, false, false),
            (5000, 1000, 1120, true, true, false),
            (u64::MAX / TICKS_PER_SECOND, 1000, 1120, true, true, false),
            // The clock has come to where it was.
            (1100, 1000, 1130, false, false, false),
        ] {
            let expected = Age { flushes, may_go, has_stayed };
            assert_eq!(
                age_of(seconds(since), seconds(start), seconds(now)),
                expected,
                "{since} {start} {now}"
            );
        }
    }

    /// A request that goes away while it sets a mark leaves a count that never fell to 0 again, so that every
    /// walk looked for marks.
    #[test]
    fn a_pass_that_finds_fewer_marks_corrects_their_number() {
        let table = ObjectTable::Entity;
        let dead = DeadContainers::default();
        for _ in 0..5 {
            drop(dead.expect(table));
        }
        let pass = |left| Pass { left, ..dead.pass_of(table) };
        let found = pass(3);
        dead.set_pass(table, Pass { from: Bytes::from_static(b"a"), ..found.clone() }, false);
        assert_eq!((dead.count_of(table), dead.pass_of(table).left), (5, 3));
        let expected = dead.expect(table);
        let begun_beside = pass(3);
        dead.set_pass(table, found.clone(), true);
        assert_eq!(dead.count_of(table), 6, "one is being set");
        drop(expected);
        dead.set_pass(table, found, true);
        dead.set_pass(table, begun_beside, true);
        assert_eq!(dead.count_of(table), 6, "one was set meanwhile");
        dead.set_pass(table, pass(3), true);
        assert_eq!((dead.count_of(table), dead.count()), (3, 3));
        dead.note_gone(table, 4);
        assert_eq!(dead.count_of(table), 0);
        assert_eq!(dead.changes_of(table), 6);
    }
}
