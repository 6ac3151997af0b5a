//! Rows in memory, for tests: the partition layer's interface, with decisions applied at once.

use crate::queries::page_walk::{RowReading, RowSource};
use base::{BoxFuture, Clock, Ticks};
use bytes::Bytes;
use partition::{
    KeyRange, ObjectTable, Operation, PartitionError, Read, Row, RowChange, RowKey, RowRef, RowVersion, Rows,
    Scan, ScanEnd, Span, Visit,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Rows of all object tables.
#[derive(Default)]
pub(crate) struct MemoryRows {
    rows: BTreeMap<(ObjectTable, Bytes), (RowVersion, Bytes)>,
    version: u64,
}

impl MemoryRows {
    /// Puts a row as it is.
    pub(crate) fn put(&mut self, table: ObjectTable, key: &RowKey, value: Bytes) {
        self.version += 1;
        self.rows.insert((table, key.as_bytes().clone()), (RowVersion(self.version), value));
    }

    /// Runs an operation.
    pub(crate) fn execute<O: Operation>(&mut self, operation: &O) -> O::Reply {
        let table = operation.object_table();
        let found = (operation.reads().iter())
            .map(|read| match read {
                Read::Point(key) => self.row(table, key).into_iter().collect(),
                Read::Head(_) | Read::Range { .. } => panic!("no operation of this crate reads that"),
            })
            .collect();
        self.version += 1;
        let decision = operation.decide(&Rows::new(found), RowVersion(self.version));
        for change in decision.changes {
            match change {
                RowChange::Put { key, value } => {
                    let row = (RowVersion(self.version), value);
                    self.rows.insert((table, key.as_bytes().clone()), row);
                }
                RowChange::Delete { key } => {
                    self.rows.remove(&(table, key.as_bytes().clone()));
                }
            }
        }
        decision.reply
    }

    fn row(&self, table: ObjectTable, key: &RowKey) -> Option<Row> {
        let (version, value) = self.rows.get(&(table, key.as_bytes().clone()))?;
        Some(Row { key: key.clone(), version: *version, value: value.clone() })
    }
}

impl RowSource for MemoryRows {
    async fn scan_spans<S: Scan>(
        &self,
        table: ObjectTable,
        spans: Vec<Span>,
        RowReading { snapshot, is_reverse }: RowReading,
        mut scan: S,
    ) -> Result<(S, ScanEnd), PartitionError> {
        assert_eq!(snapshot, None, "rows in memory have no snapshots");
        let mut has_had_enough = false;
        let mut end_before = Some(Bytes::new());
        for span in &spans {
            let is_behind = end_before.as_ref().is_some_and(|end| end <= span.start());
            assert!(is_behind, "the partition layer refuses spans that are not in order");
            end_before = match span {
                Span::Point(key) => Some(key.successor()),
                Span::Range(range) => range.end.clone(),
            };
        }
        let turned: Vec<Span> = if is_reverse { spans.into_iter().rev().collect() } else { spans };
        for span in turned {
            let is_point = matches!(span, Span::Point(_));
            let range = match span {
                Span::Point(key) => KeyRange { end: Some(key.successor()), start: key.as_bytes().clone() },
                Span::Range(range) => range,
            };
            if is_point && has_had_enough {
                return Ok((scan, ScanEnd::More(range.start)));
            }
            let from = self.rows.range((table, range.start.clone())..);
            let inside = from.take_while(|((other, key), _)| *other == table && range.contains(key));
            let mut inside: Vec<_> = inside.collect();
            if is_reverse {
                inside.reverse();
            }
            for ((_, key), (version, value)) in inside {
                let row = RowRef { key, version: *version, value };
                if has_had_enough || scan.visit(row) == Visit::StopBefore {
                    return Ok((scan, ScanEnd::More(key.clone())));
                }
            }
            has_had_enough = scan.pass_over(0) == Visit::StopBefore;
        }
        Ok((scan, ScanEnd::Complete))
    }
}

/// A clock that advances by a fixed step at each reading.
pub(crate) struct StepClock {
    reads: AtomicU64,
    step: Duration,
}

impl StepClock {
    pub(crate) fn shared(step: Duration) -> Arc<dyn Clock> {
        Arc::new(StepClock { reads: AtomicU64::new(0), step })
    }
}

impl Clock for StepClock {
    fn now(&self) -> Ticks {
        Ticks(0)
    }

    fn monotonic(&self) -> Duration {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed);
        self.step * u32::try_from(reads).unwrap_or(u32::MAX)
    }

    fn sleep(&self, _sleep_for: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Runs a future that never waits.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("rows in memory never wait"),
    }
}
