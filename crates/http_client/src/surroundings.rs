//! What a client touches outside itself, handed in.

use base::connector::SystemConnector;
use base::system::{SystemClock, SystemRandom, TokioSpawner};
use base::{Clock, Connector, Random, Spawner};
use std::sync::Arc;

/// Clock, chance, tasks and sockets. Cheap to clone.
#[derive(Clone)]
pub struct Surroundings {
    /// Dates of requests, waits and time-outs.
    pub clock: Arc<dyn Clock>,
    /// Ids of requests and the spread of waits.
    pub random: Arc<dyn Random>,
    /// Runs connections, a task each.
    pub spawner: Arc<dyn Spawner>,
    /// Makes connections.
    pub connector: Arc<dyn Connector>,
}

impl Surroundings {
    /// The real ones, with tasks on the tokio runtime that is current at the call.
    pub fn system() -> Self {
        Surroundings {
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(SystemRandom::new()),
            spawner: Arc::new(TokioSpawner::current()),
            connector: Arc::new(SystemConnector),
        }
    }
}
