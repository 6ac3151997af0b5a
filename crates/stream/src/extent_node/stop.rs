//! The node's one-way switch: after a failed write of the journal or a failed sync, no more writes until a
//! restart.

use crate::error::StreamError;
use std::sync::OnceLock;

#[derive(Default)]
pub(crate) struct Stop {
    reason: OnceLock<StreamError>,
}

impl Stop {
    /// Stops writing; the first reason stays.
    pub(crate) fn writes(&self, error: StreamError) {
        if self.reason.set(error.clone()).is_ok() {
            tracing::error!(%error, "writing has stopped");
        }
    }

    /// Why writing has stopped, if it has.
    pub(crate) fn check(&self) -> Result<(), StreamError> {
        self.reason.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}
