//! How large a trial is.

use std::time::Duration;

/// Writers of a trial.
pub(crate) const WRITERS: u64 = 16;
/// Rows of a tenant that has all of them.
pub(crate) const ROWS_OF_TENANT: i32 = 100;
/// Numbers of rows that writers change; the rest is for clients that sleep.
pub(crate) const WRITTEN_NUMBERS: u64 = 96;
/// Tenants of the moved range are below it, those of the second one below twice that.
pub(crate) const TENANTS_OF_RANGE: i64 = 1_000_000;
/// Tenants that have rows in the ranges that are not moved.
pub(crate) const OTHER_TENANTS: i64 = 10;
/// Bytes of a row, about.
pub(crate) const TEXT_CHARS: usize = 180;
/// How long a writer rests between two writes, at most.
pub(crate) const REST_MAX: Duration = Duration::from_millis(10);
/// T and the clocks' bound: shorter than usual, because each killed mover waits anew.
pub(crate) const SIGNED_FOR: Duration = Duration::from_secs(3);
pub(crate) const CLOCK_BOUND: Duration = Duration::from_millis(500);

/// How large a trial is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Rows of the moved range.
    pub(crate) rows: u64,
    pub(crate) seed: u64,
    /// Rows of a batch.
    pub(crate) batch_rows: usize,
}

impl Settings {
    pub(crate) fn new(rows: u64, seed: u64) -> Self {
        // A hundred batches, as far as they may be so long.
        let batch_rows = usize::try_from(rows / 100).unwrap_or(usize::MAX).clamp(10, 1000);
        Settings { rows, seed, batch_rows }
    }

    /// Tenants of the moved range.
    pub(crate) fn tenants(&self) -> i64 {
        (self.rows as i64 / i64::from(ROWS_OF_TENANT)).clamp(1, TENANTS_OF_RANGE)
    }
}
