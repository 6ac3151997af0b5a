//! Walks spans of rows for one page: points by `get`, ranges by scans, until the page ends or the rows do.

use crate::filter::Span;
use crate::page_budget::PageBudget;
use base::codec::DecodeError;
use bytes::Bytes;
use partition::{
    KeyRange, ObjectTable, PartitionError, Partitions, Row, RowKey, RowRef, Scan, ScanEnd, Visit,
};

/// Where rows are read: the partition layer, or rows in memory in tests.
pub(crate) trait RowSource {
    /// One row.
    fn get(
        &self,
        table: ObjectTable,
        key: &RowKey,
    ) -> impl Future<Output = Result<Option<Row>, PartitionError>> + Send;

    /// The rows of a range, in key order.
    fn scan<S: Scan>(
        &self,
        table: ObjectTable,
        range: KeyRange,
        scan: S,
    ) -> impl Future<Output = Result<(S, ScanEnd), PartitionError>> + Send;
}

impl RowSource for Partitions {
    async fn get(&self, table: ObjectTable, key: &RowKey) -> Result<Option<Row>, PartitionError> {
        Partitions::get(self, table, key).await
    }

    async fn scan<S: Scan>(
        &self,
        table: ObjectTable,
        range: KeyRange,
        scan: S,
    ) -> Result<(S, ScanEnd), PartitionError> {
        Partitions::scan(self, table, range, scan).await
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
    mut scan: S,
) -> Result<(S, Option<Bytes>), PartitionError> {
    for span in spans {
        let stopped_at;
        (scan, stopped_at) = match span {
            Span::Point(key) => visit_point(rows, table, key, scan).await?,
            Span::Range(range) => visit_range(rows, table, range, scan).await?,
        };
        if let Some(damage) = scan.damage() {
            return Err(PartitionError::Storage(format!("stored row: {damage}")));
        }
        if stopped_at.is_some() {
            return Ok((scan, stopped_at));
        }
        scan.budget().read_clock();
    }
    Ok((scan, None))
}

async fn visit_point<R: RowSource, S: PageScan>(
    rows: &R,
    table: ObjectTable,
    key: RowKey,
    mut scan: S,
) -> Result<(S, Option<Bytes>), PartitionError> {
    let Some(row) = rows.get(table, &key).await? else {
        return Ok((scan, None));
    };
    let visit = scan.visit(RowRef { key: row.key.as_bytes(), version: row.version, value: &row.value });
    let stopped_at = (visit == Visit::StopBefore).then(|| key.as_bytes().clone());
    Ok((scan, stopped_at))
}

async fn visit_range<R: RowSource, S: PageScan>(
    rows: &R,
    table: ObjectTable,
    mut range: KeyRange,
    mut scan: S,
) -> Result<(S, Option<Bytes>), PartitionError> {
    loop {
        let end;
        (scan, end) = rows.scan(table, range.clone(), scan).await?;
        match end {
            ScanEnd::Complete => return Ok((scan, None)),
            ScanEnd::More(key) if scan.budget().stopped() || scan.damage().is_some() => {
                return Ok((scan, Some(key)));
            }
            // The layer below ended, at a range's end or a bound of its own: the page goes on.
            ScanEnd::More(key) => {
                range.start = key;
                scan.budget().read_clock();
            }
        }
    }
}
