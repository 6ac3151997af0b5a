//! Work that may block its thread, for tasks that must not: files and SQLite.

use base::{BoxFuture, TaskThread};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Runs `work` on a thread and waits for it; none if the thread is gone. The work goes on if the wait is
/// dropped.
pub(crate) async fn on_thread<T: Send + 'static>(
    thread: &Arc<dyn TaskThread>,
    name: &'static str,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    let task: BoxFuture<'static, ()> = Box::pin(async move {
        // Without a receiver nothing waits for it any more.
        drop(sender.send(work.await));
    });
    thread.spawn(name, task);
    receiver.await.ok()
}
