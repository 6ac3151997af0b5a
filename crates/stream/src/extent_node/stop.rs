//! The node's one-way switch: after a failed write of the journal or a failed sync, no more writes until a
//! restart.

use super::extent::Extent;
use crate::error::StreamError;
use std::sync::OnceLock;

#[derive(Default)]
pub(crate) struct Stop {
    reason: OnceLock<StreamError>,
}

impl Stop {
    /// Syncs an extent. One sync of it goes on at a time, and none after one has failed: which bytes that one
    /// was about nobody knows.
    pub(crate) async fn sync(&self, extent: &Extent) -> Result<(), StreamError> {
        let _syncing = extent.syncing.lock().await;
        self.check()?;
        let synced = extent.file.sync_data().await;
        synced.map_err(|error| {
            let error = StreamError::write(&format!("extent {}", extent.id), &error);
            self.writes(error.clone());
            error
        })
    }

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
