//! A worker of an import: writes the batches that it gets, until there are no more, or something failed.

use super::batch::Batch;
use super::writer::{Counts, OnConflict, Source, write};
use crate::access::TableAccess;
use crate::error::ToolError;
use crate::files::window::Window;
use base::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Mutex, mpsc};

/// Part of a portion, for one worker.
pub(super) struct Job {
    pub(super) portion: u64,
    pub(super) window: Arc<Window>,
    pub(super) batches: Vec<Batch>,
}

/// What workers share.
pub(super) struct Shared {
    pub(super) jobs: Mutex<mpsc::Receiver<Job>>,
    pub(super) path: String,
    pub(super) on_conflict: OnConflict,
    pub(super) doubtful_to: u64,
    pub(super) failed: AtomicBool,
}

/// What came of a job of a portion.
pub(super) type Report = (u64, Result<Counts, ToolError>);

/// A worker: writes until there is nothing more, or something failed.
pub(super) fn work(
    shared: Arc<Shared>,
    sender: mpsc::Sender<Report>,
    mut table: TableAccess,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        loop {
            let job = shared.jobs.lock().await.recv().await;
            let Some(job) = job else { return };
            let mut counts = Counts::default();
            let mut result = Ok(());
            let source = Source {
                path: &shared.path,
                window: &job.window,
                on_conflict: shared.on_conflict,
                doubtful_to: shared.doubtful_to,
                has_lines: true,
            };
            for batch in &job.batches {
                // What is not written is not done: the portion fails, too.
                if shared.failed.load(Ordering::Relaxed) {
                    result = Err(ToolError::Stopped);
                    break;
                }
                match write(&source, &mut table, batch).await {
                    Ok(done) => counts += done,
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            if sender.send((job.portion, result.map(|()| counts))).await.is_err() {
                return;
            }
        }
    })
}
