//! What a layer is given of the outside world.
//!
//! What always holds: a layer reaches time, randomness, disk and tasks through this only, so that the
//! simulation can replace each.

use crate::{Clock, Disk, Metrics, Random, Spawner};
use std::sync::Arc;

/// What a layer may touch outside itself. Cheap to clone; each holder keeps only the parts it needs.
#[derive(Clone)]
pub struct Environment {
    /// Wall and monotonic time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The data folder.
    pub disk: Arc<dyn Disk>,
    /// Where tasks are started.
    pub spawner: Arc<dyn Spawner>,
    /// Where layers record what they measure.
    pub metrics: Metrics,
}
