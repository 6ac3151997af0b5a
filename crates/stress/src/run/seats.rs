//! Where workers run, handed in: a thread each in the program, tasks in a simulation.

use base::BoxFuture;
use std::io;
use storage_client::Surroundings;

/// What a worker does in the surroundings of its seat.
pub type Work = Box<dyn FnOnce(Surroundings) -> BoxFuture<'static, ()> + Send>;

/// Runs workers.
pub trait Seats {
    /// Runs the work to its end, and all tasks that its surroundings start as long. All seats have one clock.
    /// An error says that there is no thread to be had.
    fn start(&self, work: Work) -> io::Result<()>;
}
