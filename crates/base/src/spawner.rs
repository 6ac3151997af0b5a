//! Starting tasks, handed in, so that a simulation decides who runs when.

use crate::BoxFuture;
use std::io;
use std::sync::Arc;

/// Starts tasks. The task's name is for logs and debuggers.
pub trait Spawner: Send + Sync + 'static {
    /// Starts a task that never blocks its thread.
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>);
    /// Starts a task that may block its thread (disk writes and syncs): it gets a thread of its own. In a
    /// simulation it is an ordinary task, because there the disk waits in virtual time. An error says that
    /// there is no thread to be had; the task is dropped, and no part of it has run.
    fn spawn_dedicated(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()>;
    /// Starts a task as [`Spawner::spawn_dedicated`] does, for long work that requests do not wait for:
    /// whenever it gives way ([`give_way`]), its thread offers its core to the threads that wait for one.
    fn spawn_background(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()>;
    /// Starts a thread for tasks of which one may block it, as those of [`Spawner::spawn_dedicated`] do,
    /// while the others wait for just that. An error says that there is no thread to be had.
    fn start_thread(&self, name: &'static str) -> io::Result<Arc<dyn TaskThread>>;
    /// The number of the worker that runs the calling task, if tasks stay with their workers; else 0.
    fn current_worker(&self) -> usize {
        0
    }
}

/// A thread of its own for tasks that wake each other often: on one thread that costs no signal, and nobody
/// waits until the kernel has found a core for another thread. It ends once this is dropped and all its tasks
/// have ended. In a simulation its tasks are ordinary ones.
pub trait TaskThread: Send + Sync + 'static {
    /// Starts a task there.
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>);
}

/// Lets others run. Work in the background calls it every some tens of microseconds: the kernel would
/// otherwise leave it on its core for whole milliseconds while the journal, with all that wait for it, is
/// queued behind it.
pub async fn give_way() {
    tokio::task::yield_now().await;
}
