//! A place among the connections of a pool, which outlives an operation if something of it goes on.

use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// A place among the connections of a pool. It is free when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Lease {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Lease {
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Self {
        Lease { _permit: Arc::new(permit) }
    }
}
