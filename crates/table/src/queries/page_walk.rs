//! Reads spans of rows for one page, until the page or the rows end.
//!
//! What always holds: one scan reads all spans, so that the rows of one partition name are of one snapshot,
//! however many spans the filter has.

use crate::queries::page_budget::PageBudget;
use base::codec::DecodeError;
use bytes::Bytes;
use partition::{
    KeyRange, ObjectTable, PartitionError, Partitions, Scan, ScanEnd, SnapshotId, SnapshotOf, Span,
};

/// Which rows a query reads, and in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// As they were when this snapshot of the table was pinned; `None`: as they are.
    pub snapshot: Option<SnapshotId>,
    /// From the last key to the first. Where a page starts is then the last row that it may have.
    pub is_reverse: bool,
}

impl Reading {
    /// The same of rows that are among `keys` of `table`: a snapshot of others is as if there were none.
    pub(crate) fn among(self, table: ObjectTable, keys: &KeyRange) -> RowReading {
        let snapshot = self.snapshot.map(|id| SnapshotOf { id, table, keys: keys.clone() });
        RowReading { snapshot, is_reverse: self.is_reverse }
    }
}

/// A [`Reading`] of some rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowReading {
    pub(crate) snapshot: Option<SnapshotOf>,
    pub(crate) is_reverse: bool,
}

/// A source of rows: the partition layer, or rows in memory in tests.
pub(crate) trait RowSource {
    /// Scans the rows of ordered spans until the scan stops; those of one partition name are of one snapshot,
    /// or all are of the pinned one. In reverse it begins with the last row of the last span.
    fn scan_spans<S: Scan>(
        &self,
        table: ObjectTable,
        spans: Vec<Span>,
        reading: RowReading,
        scan: S,
    ) -> impl Future<Output = Result<(S, ScanEnd), PartitionError>> + Send;
}

impl RowSource for Partitions {
    async fn scan_spans<S: Scan>(
        &self,
        table: ObjectTable,
        spans: Vec<Span>,
        RowReading { snapshot, is_reverse }: RowReading,
        scan: S,
    ) -> Result<(S, ScanEnd), PartitionError> {
        match &snapshot {
            _ if is_reverse => self.scan_backward(table, spans, snapshot.as_ref(), scan).await,
            Some(snapshot) => self.scan_pinned(snapshot, spans, scan).await,
            None => Partitions::scan_spans(self, table, spans, scan).await,
        }
    }
}

/// A scan that fills a page.
pub(crate) trait PageScan: Scan {
    /// When the page ends.
    fn budget(&mut self) -> &mut PageBudget;
    /// The error of a row that could not be decoded.
    fn damage(&self) -> Option<&DecodeError>;
}

/// Runs `scan` over the rows of `spans`. The key is where the next page starts, if the page ended before the
/// rows.
pub(crate) async fn walk<R: RowSource, S: PageScan>(
    rows: &R,
    table: ObjectTable,
    spans: Vec<Span>,
    reading: RowReading,
    scan: S,
) -> Result<(S, Option<Bytes>), PartitionError> {
    let (scan, end) = rows.scan_spans(table, spans, reading, scan).await?;
    if let Some(damage) = scan.damage() {
        return Err(PartitionError::Storage(format!("stored row: {damage}")));
    }
    Ok(match end {
        ScanEnd::Complete => (scan, None),
        ScanEnd::More(key) => (scan, Some(key)),
    })
}
