//! Starts the workers of a scan, keeps its state about every second, and ends with the first error.

use super::ledger::Ledger;
use super::worker::{Scan, Sink, work};
use crate::access::TableAccess;
use crate::environment::{Progress, Rate, Rest, ToolEnvironment};
use crate::error::ToolError;
use base::{BoxFuture, DiskFile};
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use storage_client::TableClient;
use tokio::sync::mpsc;

/// Progress is shown, and the state is kept, so often.
const EVERY: Duration = Duration::from_millis(250);

/// A worker's task ended without a result.
pub(crate) const BROKE_DOWN: &str = "a worker broke down, which is a mistake in this program";

/// What is kept of a scan for a later run.
pub(crate) struct Kept {
    pub(crate) ledger: Ledger,
    /// Bytes of the output that the ledger accounts for; the file is to be synced before it is kept.
    pub(crate) output: Option<(Arc<dyn DiskFile>, u64)>,
}

/// Keeps states.
pub(crate) trait Keeper: Send {
    fn keep<'a>(&'a mut self, kept: Kept) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// Keeps nothing: for scans that change nothing.
pub(crate) struct NoKeeper;

impl Keeper for NoKeeper {
    fn keep<'a>(&'a mut self, _: Kept) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Runs a scan with a worker for each sink, to its end or to a signal's, which is an error, too. The state is
/// kept at the end, whatever that is.
pub(crate) async fn run<S: Sink>(
    verb: &'static str,
    scan: &Arc<Scan>,
    table: &TableClient,
    sinks: Vec<S>,
    environment: &mut ToolEnvironment<'_>,
    keeper: &mut dyn Keeper,
) -> Result<Vec<S>, ToolError> {
    let workers = sinks.len();
    // A run that goes on knows by it that there was one before.
    keep(scan, keeper).await?;
    let (sender, mut ended) = mpsc::channel(workers.max(1));
    for mut sink in sinks {
        let (scan, sender) = (scan.clone(), sender.clone());
        let mut table = TableAccess::of(table).reading(scan.request.snapshot.clone());
        let worker = async move {
            let mut watched = FailsUnlessDone { scan: &scan, is_done: false };
            let result = work(&scan, &mut table, &mut sink).await;
            watched.is_done = result.is_ok();
            drop(watched);
            // The other end is there as long as workers are.
            let _ = sender.send((sink, result)).await;
        };
        environment.surroundings.spawner.spawn("table", Box::pin(worker));
    }
    drop(sender);
    let outcome = watch(verb, scan, &mut ended, workers, environment, keeper).await;
    let kept = keep(scan, keeper).await;
    let sinks = outcome?;
    kept?;
    if scan.stop.is_set() && scan.book.lock().await.ledger.open_count() > 0 {
        return Err(ToolError::Stopped);
    }
    Ok(sinks)
}

/// Ends the other workers of a scan when one fails, or breaks down: they would wait for its range for ever.
struct FailsUnlessDone<'a> {
    scan: &'a Scan,
    is_done: bool,
}

impl Drop for FailsUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.scan.fail();
        }
    }
}

async fn watch<S>(
    verb: &'static str,
    scan: &Scan,
    ended: &mut mpsc::Receiver<(S, Result<(), ToolError>)>,
    workers: usize,
    environment: &mut ToolEnvironment<'_>,
    keeper: &mut dyn Keeper,
) -> Result<Vec<S>, ToolError> {
    let clock = environment.surroundings.clock.clone();
    let mut rate = Rate::new(clock.monotonic(), scan.book.lock().await.ledger.rows);
    let (mut sinks, mut error) = (Vec::new(), None);
    let mut tick = clock.sleep(EVERY);
    while sinks.len() < workers {
        match select(pin!(ended.recv()), &mut tick).await {
            Either::Left((Some((sink, result)), _)) => {
                sinks.push(sink);
                error = error.or(result.err());
            }
            Either::Left((None, _)) => return Err(error.unwrap_or(ToolError::refused(BROKE_DOWN))),
            Either::Right(_) => {
                tick = clock.sleep(EVERY);
                let (done, rest) = {
                    let ledger = &scan.book.lock().await.ledger;
                    let ranges = Rest::Ranges(ledger.open_count());
                    (ledger.rows, ledger.estimated_rest().map_or(ranges, Rest::About))
                };
                let rate = rate.look(clock.monotonic(), done);
                (environment.watcher)(&Progress { verb, done, rate, rest });
                if let Err(failed) = keep(scan, keeper).await {
                    scan.fail();
                    error = error.or(Some(failed));
                }
            }
        }
    }
    error.map_or(Ok(sinks), Err)
}

/// Keeps the state of the moment. Workers go on meanwhile.
async fn keep(scan: &Scan, keeper: &mut dyn Keeper) -> Result<(), ToolError> {
    let kept = {
        let book = scan.book.lock().await;
        let output = book.output.as_ref().map(|output| (output.file(), output.size_bytes()));
        Kept { ledger: book.ledger.clone(), output }
    };
    keeper.keep(kept).await
}
