//! When a page of results ends.
//!
//! A page ends at the requested number of rows, at [`PAGE_BYTES_MAX`], at [`PAGE_EXAMINED_ROWS_MAX`] or after
//! [`PAGE_TIME_MAX`]. When it holds the requested rows, up to [`LOOK_AHEAD_ROWS`] more rows are examined for
//! one that matches: without that, many full pages would carry a token that leads to an empty page.
//! Tombstones count like rows that don't match: there may be millions of them.
//!
//! What always holds: each page advances by one row at least, if there is one, so following tokens ends.

use crate::limits::PAGE_ROWS_MAX;
use base::Clock;
use std::sync::Arc;
use std::time::Duration;

/// Size of a page's stored entities and keys, and of the selected names for each entity, in bytes. A page
/// with one entity may exceed it.
pub(crate) const PAGE_BYTES_MAX: usize = 4 << 20;
/// Rows examined for one page, whether they match or not, tombstones included.
pub(crate) const PAGE_EXAMINED_ROWS_MAX: u64 = 200_000;
/// Time that one page takes at most.
pub(crate) const PAGE_TIME_MAX: Duration = Duration::from_secs(5);
/// Rows examined for one more match when the page is full.
pub(crate) const LOOK_AHEAD_ROWS: u64 = 256;
/// The clock is read once for this many rows.
const ROWS_PER_CLOCK_READ: u64 = 64;

/// Decides when a scan that fills a page stops.
pub(crate) struct PageBudget {
    clock: Arc<dyn Clock>,
    deadline: Duration,
    rows_max: usize,
    examined_rows_max: u64,
    rows_read: u64,
    rows_passed_over: u64,
    look_ahead: u64,
    out_of_time: bool,
    stopped: bool,
}

impl PageBudget {
    /// For a page of up to `top` rows that starts now.
    pub(crate) fn new(clock: Arc<dyn Clock>, top: usize) -> Self {
        PageBudget {
            deadline: clock.monotonic() + PAGE_TIME_MAX,
            clock,
            rows_max: top.clamp(1, PAGE_ROWS_MAX),
            examined_rows_max: PAGE_EXAMINED_ROWS_MAX,
            rows_read: 0,
            rows_passed_over: 0,
            look_ahead: LOOK_AHEAD_ROWS,
            out_of_time: false,
            stopped: false,
        }
    }

    /// The same for a page that examines fewer rows, if a number is given.
    pub(crate) fn examining(self, rows_max: Option<u64>) -> Self {
        let examined_rows_max = rows_max.unwrap_or(u64::MAX).clamp(1, self.examined_rows_max);
        PageBudget { examined_rows_max, ..self }
    }

    /// Whether one more row may be examined, when the page has `rows` rows. If so, it is counted.
    pub(crate) fn examine(&mut self, rows: usize) -> bool {
        if self.rows_read > 0 && self.rows_read.is_multiple_of(ROWS_PER_CLOCK_READ) {
            self.read_clock();
        }
        if !self.continues(rows) {
            return false;
        }
        self.rows_read += 1;
        if self.is_full(rows) {
            self.look_ahead -= 1;
        }
        true
    }

    /// Counts tombstones that were passed over, when the page has `rows` rows. Returns whether the scan
    /// continues.
    pub(crate) fn pass_over(&mut self, tombstone_count: u64, rows: usize) -> bool {
        self.rows_passed_over += tombstone_count;
        if self.is_full(rows) {
            self.look_ahead = self.look_ahead.saturating_sub(tombstone_count);
        }
        self.read_clock();
        self.continues(rows)
    }

    fn continues(&mut self, rows: usize) -> bool {
        let walked = self.rows_read + self.rows_passed_over;
        let spent = walked >= self.examined_rows_max || (self.out_of_time && walked > 0);
        if spent || (self.is_full(rows) && self.look_ahead == 0) {
            self.stopped = true;
        }
        !self.stopped
    }

    /// Whether a row that matches fits, when the page has `rows` rows and `bytes` bytes.
    pub(crate) fn fits(&mut self, rows: usize, bytes: usize) -> bool {
        if self.is_full(rows) || (rows > 0 && bytes > PAGE_BYTES_MAX) {
            self.stopped = true;
        }
        !self.stopped
    }

    /// Reads the clock; after the deadline the next row stops the scan.
    fn read_clock(&mut self) {
        self.out_of_time |= self.clock.monotonic() >= self.deadline;
    }

    /// Rows examined, without tombstones.
    pub(crate) fn rows_read(&self) -> u64 {
        self.rows_read
    }

    fn is_full(&self, rows: usize) -> bool {
        rows >= self.rows_max
    }
}
