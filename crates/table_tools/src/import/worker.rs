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

/// What came of a job of a portion; none if its worker broke down.
pub(super) type Report = Option<(u64, Result<Counts, ToolError>)>;

/// Tells that a worker broke down in the middle of its work, for which the portion would wait for ever.
struct TellsUnlessDone<'a> {
    shared: &'a Shared,
    sender: &'a mpsc::Sender<Report>,
    is_done: bool,
}

impl Drop for TellsUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.shared.failed.store(true, Ordering::Relaxed);
            // It has room for all jobs that are under way.
            let _ = self.sender.try_send(None);
        }
    }
}

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
            let mut told = TellsUnlessDone { shared: &shared, sender: &sender, is_done: false };
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
            told.is_done = true;
            drop(told);
            if sender.send(Some((job.portion, result.map(|()| counts)))).await.is_err() {
                return;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An import waited for ever for what a worker that broke down had under way.
    #[tokio::test]
    async fn a_worker_that_breaks_down_is_told() {
        let ((_, jobs), (sender, mut reports)) = (mpsc::channel(1), mpsc::channel(1));
        let (path, failed) = ("f".to_owned(), AtomicBool::new(false));
        let (jobs, on_conflict) = (Mutex::new(jobs), OnConflict::Fail);
        let shared = Shared { jobs, path, on_conflict, doubtful_to: 0, failed };
        for is_done in [true, false] {
            drop(TellsUnlessDone { shared: &shared, sender: &sender, is_done });
            assert_eq!(shared.failed.load(Ordering::Relaxed), !is_done);
            assert_eq!(reports.try_recv().is_ok_and(|report| report.is_none()), !is_done);
        }
    }
}
