//! A worker of a scan: reads ranges page by page, and divides those of others when it has none.

use super::ledger::{Ledger, Next, OpenRange};
use super::order::Order;
use super::probe::search;
use crate::access::TableAccess;
use crate::environment::Stop;
use crate::error::ToolError;
use crate::files::output::Output;
use crate::lines::row::{Row, rows_of_page};
use base::{BoxFuture, Clock};
use futures_util::future::select;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage_client::{Continuation, Query, SnapshotToken};
use tokio::sync::{Mutex, Notify};

/// How long a worker without work waits until it looks again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What the workers of a scan share.
pub(crate) struct Scan {
    pub(crate) book: Mutex<Book>,
    pub(crate) request: ScanRequest,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stop: Stop,
    changed: Notify,
    failed: AtomicBool,
}

/// What is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScanRequest {
    /// The table's URL, for people.
    pub(crate) url: String,
    pub(crate) filter: Option<String>,
    pub(crate) select: Vec<String>,
    /// Of this snapshot; what there is without one.
    pub(crate) snapshot: Option<SnapshotToken>,
    /// Ranges are divided, so that several workers have some.
    pub(crate) is_parallel: bool,
}

/// What is read how far, and what was written of it: changed together.
pub(crate) struct Book {
    pub(crate) ledger: Ledger,
    pub(crate) output: Option<Output>,
}

/// Which part of the table a page is of.
pub(crate) struct Place<'a> {
    pub(crate) range: &'a OpenRange,
    /// The page is the range's last one.
    pub(crate) is_end: bool,
    /// Where the range ends, if that is not where its filter ends; of the last page only.
    pub(crate) stop: Option<super::key::Key>,
}

/// What is done with rows. Each worker has one of its own.
pub(crate) trait Sink: Send + 'static {
    /// Works on the rows of a page, in order and perhaps none; gives what is to be appended to the output.
    /// The page is finished once this has ended.
    fn take<'a>(
        &'a mut self,
        place: &'a Place<'a>,
        rows: &'a [Row<'a>],
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>>;
}

impl Scan {
    pub(crate) fn new(book: Book, request: ScanRequest, clock: Arc<dyn Clock>, stop: Stop) -> Self {
        let (changed, failed) = (Notify::new(), AtomicBool::new(false));
        Scan { book: Mutex::new(book), request, clock, stop, changed, failed }
    }

    /// Ends all workers.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    fn is_over(&self) -> bool {
        self.stop.is_set() || self.failed.load(Ordering::Relaxed)
    }

    async fn wait(&self) {
        select(pin!(self.changed.notified()), self.clock.sleep(LOOK_AGAIN_AFTER)).await;
    }
}

/// Works until all is read, or the scan is over.
pub(crate) async fn work(
    scan: &Scan,
    table: &mut TableAccess,
    sink: &mut impl Sink,
) -> Result<(), ToolError> {
    let mut body = Vec::new();
    while !scan.is_over() {
        let next = scan.book.lock().await.ledger.next(scan.request.is_parallel);
        match next {
            Next::Read(range) => read(scan, table, sink, range, &mut body).await?,
            Next::Divide(candidate) => {
                let found = search(table, &candidate).await?;
                let mut book = scan.book.lock().await;
                let hint = found.empty_from.as_deref();
                match &found.division {
                    Some(division) => {
                        // Else it came too late, and is tried again.
                        book.ledger.divide(&candidate, division, hint);
                    }
                    None => book.ledger.undividable(candidate.id, hint),
                }
                scan.changed.notify_one();
            }
            Next::Wait => scan.wait().await,
            Next::End => break,
        }
    }
    Ok(())
}

/// Reads a range to its end, or until the scan is over.
async fn read(
    scan: &Scan,
    table: &mut TableAccess,
    sink: &mut impl Sink,
    range: OpenRange,
    body: &mut Vec<u8>,
) -> Result<(), ToolError> {
    let mut query = Query {
        filter: range.range.filter_and(scan.request.filter.as_deref()),
        select: scan.request.select.clone(),
        page_size_max: None,
        from: range.cursor.as_ref().map(Continuation::from),
        ..Query::all()
    };
    let mut order = Order::behind(range.last.clone());
    loop {
        let continuation = table.page(&query, body).await?;
        let rows = rows_of_page(body).map_err(ToolError::Refused)?;
        let keys = rows.iter().map(|row| (&*row.partition_key, &*row.row_key));
        let url = &scan.request.url;
        order
            .take(&range.range, keys.clone())
            .map_err(|what| ToolError::Refused(format!("{url}: {what}")))?;
        let (count, is_end, stop) = {
            let mut book = scan.book.lock().await;
            let (count, is_end) = book.ledger.claim(range.id, keys, continuation.is_some());
            (count, is_end, book.ledger.stop_of(range.id).filter(|_| is_end))
        };
        let place = Place { range: &range, is_end, stop };
        let bytes = sink.take(&place, &rows[..count]).await?;
        {
            let mut book = scan.book.lock().await;
            if let Some(output) = book.output.as_mut().filter(|_| !bytes.is_empty()) {
                output.append(bytes).await?;
            }
            book.ledger.finish_page(range.id, count as u64, continuation.as_ref(), order.last(), is_end);
        }
        if is_end {
            scan.changed.notify_waiters();
            return Ok(());
        }
        if scan.is_over() {
            return Ok(());
        }
        query.from = continuation;
    }
}
