//! The threads of a load's workers: a runtime of its own on each, so that nothing goes from core to core.

use ::stress::{Seats, Work};
use base::Clock;
use std::io;
use std::sync::Arc;
use storage_client::Surroundings;

/// Gives each worker a thread.
pub(super) struct Threads {
    clock: Arc<dyn Clock>,
}

impl Threads {
    /// All with that clock.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Threads { clock }
    }
}

impl Seats for Threads {
    fn start(&self, work: Work) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let clock = self.clock.clone();
        let thread = std::thread::Builder::new().name("stress".to_owned()).spawn(move || {
            // Tasks start on the runtime that is current at the call.
            runtime.block_on(async { work(Surroundings { clock, ..Surroundings::system() }).await });
            // Connections need no goodbye.
            runtime.shutdown_background();
        });
        thread.map(drop)
    }
}
