//! Reads: gets and scans over a snapshot, beside the writers and without waiting for them.

use super::RangePartition;
use crate::key::{KeyRange, RowKey};
use crate::operation::{Row, RowRef, Scan, ScanEnd, Visit};
use bytes::Bytes;

impl RangePartition {
    /// The row at `key`, if it is there.
    pub(crate) fn get(&self, key: &RowKey) -> Option<Row> {
        let found = self.memory.get(key.as_bytes(), self.visible())?;
        found.value.map(|value| Row { key: key.clone(), version: found.version, value })
    }

    /// Shows the rows of `range`, as far as they lie here, from one snapshot.
    pub(crate) fn scan<S: Scan>(&self, range: &KeyRange, scan: &mut S) -> ScanEnd {
        let mut end = ScanEnd::Complete;
        self.memory.scan(&range.intersect(&self.range), self.visible(), |key, version, value| {
            let Some(value) = value else { return true };
            match scan.visit(RowRef { key, version, value }) {
                Visit::Continue => true,
                Visit::StopBefore => {
                    end = ScanEnd::More(Bytes::copy_from_slice(key));
                    false
                }
            }
        });
        end
    }
}
