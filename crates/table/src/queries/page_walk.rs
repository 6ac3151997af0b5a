//! Walks spans of rows for one page, until the page ends or the rows do.
//!
//! What always holds: the spans are read in one go, so that the rows of one partition name are of one snapshot, in
//! however many spans the filter has them.

use crate::queries::page_budget::PageBudget;
use base::codec::DecodeError;
use bytes::Bytes;
use partition::{ObjectTable, PartitionError, Partitions, Scan, ScanEnd, Span};

/// Where rows are read: the partition layer, or rows in memory in tests.
pub(crate) trait RowSource {
    /// The rows of spans that are in order, until the scan stops; those of one partition name are of one snapshot.
    fn scan_spans<S: Scan>(
        &self,
        table: ObjectTable,
        spans: Vec<Span>,
        scan: S,
    ) -> impl Future<Output = Result<(S, ScanEnd), PartitionError>> + Send;
}

impl RowSource for Partitions {
    async fn scan_spans<S: Scan>(
        &self,
        table: ObjectTable,
        spans: Vec<Span>,
        scan: S,
    ) -> Result<(S, ScanEnd), PartitionError> {
        Partitions::scan_spans(self, table, spans, scan).await
    }
}

/// A scan that fills a page.
pub(crate) trait PageScan: Scan {
    /// When the page ends.
    fn budget(&mut self) -> &mut PageBudget;
    /// Why a row could not be read, if one couldn't.
    fn damage(&self) -> Option<&DecodeError>;
}

/// Shows the rows of `spans` to `scan`. The key is where to go on, if the page ended before the rows did.
pub(crate) async fn walk<R: RowSource, S: PageScan>(
    rows: &R,
    table: ObjectTable,
    spans: Vec<Span>,
    scan: S,
) -> Result<(S, Option<Bytes>), PartitionError> {
    let (scan, end) = rows.scan_spans(table, spans, scan).await?;
    if let Some(damage) = scan.damage() {
        return Err(PartitionError::Storage(format!("stored row: {damage}")));
    }
    Ok(match end {
        ScanEnd::Complete => (scan, None),
        ScanEnd::More(key) => (scan, Some(key)),
    })
}
