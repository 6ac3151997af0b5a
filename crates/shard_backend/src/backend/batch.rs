//! Batches of rows, and their bounds.
//!
//! What always holds: a batch has at most the rows and bytes of its bounds, but one row at least if there is
//! one; a scan looks at a bounded number of rows for it, however few it finds.

use crate::limits::{BATCH_BYTES_MAX, BATCH_LOOKED_AT_ROWS_MAX, BATCH_ROWS_MAX};
use crate::value::row::{Row, RowKey};

/// Bounds of a batch; the default is as large as it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchBounds {
    /// Rows, from 1 to [`BATCH_ROWS_MAX`].
    pub rows_max: usize,
    /// Bytes of values, up to [`BATCH_BYTES_MAX`]. The first row counts as fitting.
    pub bytes_max: usize,
    /// Rows that are looked at, from 1 to [`BATCH_LOOKED_AT_ROWS_MAX`].
    pub looked_at_rows_max: usize,
}

impl Default for BatchBounds {
    fn default() -> Self {
        BatchBounds {
            rows_max: BATCH_ROWS_MAX,
            bytes_max: BATCH_BYTES_MAX,
            looked_at_rows_max: BATCH_LOOKED_AT_ROWS_MAX,
        }
    }
}

/// Rows of a scan, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The rows; there may be none although more follow.
    pub rows: Vec<Row>,
    /// Where the scan goes on: after this key. None at the end.
    pub next: Option<RowKey>,
}

/// A batch that is being filled.
pub(crate) struct BatchFill {
    bounds: BatchBounds,
    rows: Vec<Row>,
    size_bytes: usize,
    looked_at: usize,
    last: Option<RowKey>,
}

impl BatchFill {
    pub(crate) fn new(bounds: BatchBounds) -> Self {
        let bounds = BatchBounds {
            rows_max: bounds.rows_max.clamp(1, BATCH_ROWS_MAX),
            bytes_max: bounds.bytes_max.min(BATCH_BYTES_MAX),
            looked_at_rows_max: bounds.looked_at_rows_max.clamp(1, BATCH_LOOKED_AT_ROWS_MAX),
        };
        BatchFill { bounds, rows: Vec::new(), size_bytes: 0, looked_at: 0, last: None }
    }

    /// Its bounds, within what is allowed.
    #[cfg(feature = "postgres")]
    pub(crate) fn bounds(&self) -> BatchBounds {
        self.bounds
    }

    /// Whether it takes no further row.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= self.bounds.rows_max || self.looked_at >= self.bounds.looked_at_rows_max
    }

    /// Passes over a row of another shardlet.
    pub(crate) fn pass(&mut self, key: RowKey) {
        self.looked_at += 1;
        self.last = Some(key);
    }

    /// Takes a row; false if it does not fit, and the batch is complete without it.
    pub(crate) fn take(&mut self, key: RowKey, row: Row) -> bool {
        let size_bytes = self.size_bytes.saturating_add(row.size_bytes());
        if size_bytes > self.bounds.bytes_max && !self.rows.is_empty() {
            return false;
        }
        self.size_bytes = size_bytes;
        self.rows.push(row);
        self.pass(key);
        true
    }

    /// The batch; at the end of the table nothing follows.
    pub(crate) fn finish(self, is_at_end: bool) -> Batch {
        Batch { rows: self.rows, next: self.last.filter(|_| !is_at_end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::value::Value;

    #[test]
    fn a_batch_ends_at_each_bound_and_has_one_row_at_least() {
        let row = |text: &str| Row { values: vec![Value::Text(text.to_owned())] };
        let key = |number: i32| RowKey { values: vec![number.into()] };
        let size_bytes = row("four").size_bytes();
        // Rows of the table, bounds, rows of the batch, and the key after which it goes on.
        for (there, rows_max, bytes_max, looked_at_rows_max, expected, next) in [
            (5, 9, 9999, 99, 5, None),
            (5, 3, 9999, 99, 3, Some(2)),
            (5, 9, 2 * size_bytes, 99, 2, Some(1)),
            (5, 9, 2 * size_bytes - 1, 99, 1, Some(0)),
            (5, 9, 0, 99, 1, Some(0)),
            (5, 9, 9999, 4, 4, Some(3)),
            (5, 0, 0, 0, 1, Some(0)),
            (0, 9, 9999, 99, 0, None),
        ] {
            let mut fill = BatchFill::new(BatchBounds { rows_max, bytes_max, looked_at_rows_max });
            let mut is_at_end = true;
            for number in 0..there {
                if fill.is_full() || !fill.take(key(number), row("four")) {
                    is_at_end = false;
                    break;
                }
            }
            let batch = fill.finish(is_at_end);
            assert_eq!((batch.rows.len(), batch.next), (expected, next.map(key)), "{rows_max} {bytes_max}");
        }
        let mut fill = BatchFill::new(BatchBounds { looked_at_rows_max: 2, ..BatchBounds::default() });
        fill.pass(key(1));
        assert!(!fill.is_full());
        fill.pass(key(2));
        assert!(fill.is_full());
        assert_eq!(fill.finish(false), Batch { rows: Vec::new(), next: Some(key(2)) });
    }
}
