//! Starting tasks, handed in, so that a simulation decides who runs when.

use crate::BoxFuture;

/// Starts tasks. The task's name is for logs and debuggers.
pub trait Spawner: Send + Sync + 'static {
    /// Starts a task that never blocks its thread.
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>);
    /// Starts a task that may block its thread (disk writes and syncs): it gets a thread of its own.
    /// In a simulation it is an ordinary task, because there the disk waits in virtual time.
    fn spawn_dedicated(&self, name: &'static str, task: BoxFuture<'static, ()>);
}
