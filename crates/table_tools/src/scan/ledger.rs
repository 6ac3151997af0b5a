//! Which range is read how far, and what may be divided: pure bookkeeping, the heart of a scan.
//!
//! What always holds: the open ranges together hold every row that was not finished; a range's rows end at
//! its `stop`, which is only ever lowered, and only above what is claimed; the snapshot of a ledger is what a
//! later run needs to finish the rest, and nothing twice.

use super::key::{Key, next_text};
use super::range::KeyRange;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use storage_client::Continuation;

/// Open ranges, at most; then none is divided any more.
const OPEN_MAX: usize = 1024;
/// Pages that a range is read on before it is tried again to divide it.
const PAGES_BEFORE_RETRY: u64 = 16;

/// A range that is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenRange {
    pub(crate) id: u64,
    /// As it was when its first page was requested: its filter stays the same on all pages.
    pub(crate) range: KeyRange,
    /// Rows from here on belong to another range.
    pub(crate) stop: Option<Key>,
    /// Where its next page begins, as the service says.
    pub(crate) cursor: Option<Cursor>,
    /// The last row that the service has sent of it, on finished pages.
    #[serde(default)]
    pub(crate) last: Option<Key>,
    #[serde(skip)]
    course: Course,
}

/// A continuation, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    pub(crate) partition: String,
    pub(crate) row: Option<String>,
}

/// What is known of a range in this run only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Course {
    is_running: bool,
    /// The last row that its worker has taken.
    claimed: Option<Key>,
    /// Its last page was claimed.
    is_ending: bool,
    pages: u64,
    /// Is not tried to be divided before.
    divided_from_page: u64,
    /// A text from which on there was no key when it was looked for: only a hint for probing.
    empty_from: Option<String>,
}

/// What a worker does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Reads a range.
    Read(OpenRange),
    /// Tries to divide a range.
    Divide(Candidate),
    /// Waits: others read, and nothing can be divided now.
    Wait,
    /// All is read.
    End,
}

/// A range that may be divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: u64,
    pub(crate) range: KeyRange,
    /// What is divided lies behind this row.
    pub(crate) claimed: Key,
    pub(crate) stop: Option<Key>,
    pub(crate) empty_from: Option<String>,
}

/// Where a range is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// Into the part below this partition, and the rest.
    AtPartition(String),
    /// Into the part below this row of the claimed row's partition, and the rest of that partition, which is
    /// all that is left of the range.
    AtRow(String),
}

/// The bookkeeping of a scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    open: Vec<OpenRange>,
    next_id: u64,
    /// Rows of finished pages.
    pub(crate) rows: u64,
    /// Ranges that are finished, and their rows.
    pub(crate) finished: u64,
}

impl Ledger {
    /// Everything is to be read.
    pub(crate) fn new(range: KeyRange) -> Self {
        let mut ledger = Ledger { open: Vec::new(), next_id: 0, rows: 0, finished: 0 };
        ledger.open_range(range, None, None);
        ledger
    }

    fn open_range(&mut self, range: KeyRange, stop: Option<Key>, empty_from: Option<String>) {
        let course = Course { empty_from, ..Course::default() };
        self.open.push(OpenRange { id: self.next_id, range, stop, cursor: None, last: None, course });
        self.next_id += 1;
    }

    /// Ranges that are not finished.
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// What a worker is to do; a range that it reads is its own.
    pub(crate) fn next(&mut self, may_divide: bool) -> Next {
        if let Some(range) = self.open.iter_mut().find(|range| !range.course.is_running) {
            range.course.is_running = true;
            return Next::Read(range.clone());
        }
        if self.open.is_empty() {
            return Next::End;
        }
        let has_room = may_divide && self.open.len() < OPEN_MAX;
        let candidates = self.open.iter_mut().filter(|range| has_room && range.is_dividable());
        // The one that was read longest has most left, as far as that can be known.
        let Some(range) = candidates.max_by_key(|range| range.course.pages) else { return Next::Wait };
        let Some(claimed) = range.course.claimed.clone() else { return Next::Wait };
        // Nobody else tries at the same time.
        range.course.divided_from_page = range.course.pages + PAGES_BEFORE_RETRY;
        Next::Divide(Candidate {
            id: range.id,
            range: range.range.clone(),
            claimed,
            stop: range.stop.clone(),
            empty_from: range.course.empty_from.clone(),
        })
    }

    /// Divides a range, if that is still right: nothing beyond the division may have been claimed meanwhile.
    pub(crate) fn divide(
        &mut self,
        candidate: &Candidate,
        division: &Division,
        empty_from: Option<&str>,
    ) -> bool {
        let Some(range) = self.open.iter_mut().find(|range| range.id == candidate.id) else { return false };
        let Some(claimed) = range.course.claimed.clone().filter(|_| !range.course.is_ending) else {
            return false;
        };
        let partition = &candidate.claimed.partition;
        let stop = match division {
            Division::AtPartition(partition) => Key::new(partition, ""),
            // A range of partitions that has gone on to the next one is no longer only this one.
            Division::AtRow(_) if claimed.partition != *partition => return false,
            Division::AtRow(row) => Key::new(partition, row),
        };
        let is_above = stop.cmp_parts(&claimed.partition, &claimed.row) == Ordering::Greater;
        let is_below = candidate.stop == range.stop
            && range
                .stop
                .as_ref()
                .is_none_or(|old| stop.cmp_parts(&old.partition, &old.row) == Ordering::Less);
        if !is_above || !is_below {
            return false;
        }
        let old_stop = range.stop.replace(stop);
        range.course.divided_from_page = range.course.pages;
        range.course.empty_from = None;
        let hint = empty_from.map(str::to_owned);
        match (division, &candidate.range) {
            (Division::AtPartition(partition), range) => {
                self.open_range(range.from(partition), old_stop, hint)
            }
            (Division::AtRow(row), range @ KeyRange::Rows { .. }) => {
                self.open_range(range.from(row), old_stop, hint);
            }
            (Division::AtRow(row), range) => {
                let is_within = old_stop.as_ref().is_some_and(|old| old.partition == *partition);
                let rows_stop = old_stop.clone().filter(|_| is_within);
                self.open_range(KeyRange::partition(partition.clone()).from(row), rows_stop, hint);
                // Partitions behind it: none when it was looked, but another table may have some.
                if !is_within {
                    self.open_range(range.from(&next_text(partition)), old_stop, None);
                }
            }
        }
        true
    }

    /// Nothing was found to divide a range at.
    pub(crate) fn undividable(&mut self, id: u64, empty_from: Option<&str>) {
        if let Some(range) = self.open.iter_mut().find(|range| range.id == id) {
            range.course.empty_from = empty_from.map(str::to_owned).or(range.course.empty_from.take());
        }
    }

    /// Claims the rows of a page, whose keys are given in order: how many of them belong to the range, and
    /// whether it ends with them.
    pub(crate) fn claim<'a>(
        &mut self,
        id: u64,
        keys: impl DoubleEndedIterator<Item = (&'a str, &'a str)> + ExactSizeIterator,
        has_more: bool,
    ) -> (usize, bool) {
        let Some(range) = self.open.iter_mut().find(|range| range.id == id) else { return (0, true) };
        let all = keys.len();
        let (mut count, mut last) = (all, None);
        for (partition, row) in keys.rev() {
            let stop = range.stop.as_ref();
            if stop.is_none_or(|stop| stop.cmp_parts(partition, row) == Ordering::Greater) {
                last = Some(Key::new(partition, row));
                break;
            }
            count -= 1;
        }
        // All that is behind a row beyond its stop is beyond it, too.
        range.course.is_ending = !has_more || count < all;
        range.course.claimed = last.or(range.course.claimed.take());
        (count, range.course.is_ending)
    }

    /// Where a range ends, if that is not where its filter ends.
    pub(crate) fn stop_of(&self, id: u64) -> Option<Key> {
        self.open.iter().find(|range| range.id == id)?.stop.clone()
    }

    /// A page is finished, of which `last` is the last row, or of one before. A range that ends with it is
    /// closed.
    pub(crate) fn finish_page(
        &mut self,
        id: u64,
        rows: u64,
        continuation: Option<&Continuation>,
        last: Option<&Key>,
        is_end: bool,
    ) {
        self.rows += rows;
        let Some(at) = self.open.iter().position(|range| range.id == id) else { return };
        if is_end {
            self.open.swap_remove(at);
            self.finished += 1;
            return;
        }
        let range = &mut self.open[at];
        range.course.pages += 1;
        range.last = last.cloned();
        range.cursor = continuation.map(|continuation| Cursor {
            partition: continuation.partition_key.clone(),
            row: continuation.row_key.clone(),
        });
    }

    /// Rows that are left, roughly: open ranges have as many as finished ones had.
    pub(crate) fn estimated_rest(&self) -> Option<u64> {
        const FINISHED_MIN: u64 = 4;
        let mean = self.rows.checked_div(self.finished).filter(|_| self.finished >= FINISHED_MIN)?;
        Some(mean.saturating_mul(self.open.len() as u64) / 2)
    }
}

impl OpenRange {
    fn is_dividable(&self) -> bool {
        let course = &self.course;
        let is_due = course.pages >= course.divided_from_page;
        course.is_running && course.claimed.is_some() && !course.is_ending && course.pages > 0 && is_due
    }
}

impl From<&Cursor> for Continuation {
    fn from(cursor: &Cursor) -> Self {
        Continuation { partition_key: cursor.partition.clone(), row_key: cursor.row.clone() }
    }
}

#[cfg(test)]
mod tests;
