//! Why there is no map.

use shard_map::{Epoch, Name};
use shard_store::HomeError;
use std::sync::Arc;
use std::time::Duration;

/// A map that could not be read. All that waited for one read have the same error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MapReadError {
    /// The home failed, or has no map.
    #[error(transparent)]
    Home(Arc<HomeError>),
    /// It did not answer.
    #[error("{place}: the map was not read within {read_for:?}; is the home reachable?")]
    TimedOut {
        /// The home.
        place: String,
        /// How long it was waited for.
        read_for: Duration,
    },
    /// The task that read it ended.
    #[error("{place}: the task that reads the map ended; is the process stopping?")]
    Ended {
        /// The home.
        place: String,
    },
    /// Another catalog took the place of the one that was read before.
    #[error(
        "{place} has catalog `{there}` now, which is not the catalog `{known}` that was here; open it anew"
    )]
    OtherCatalog {
        /// The home.
        place: String,
        /// What is there.
        there: Name,
        /// What was there.
        known: Name,
    },
    /// The map went back: an old backup was restored.
    #[error(
        "{place} is at epoch {there}, and epoch {known} was read before; recover the map from its shards"
    )]
    WentBack {
        /// The home.
        place: String,
        /// Its epoch.
        there: Epoch,
        /// The epoch that was known.
        known: Epoch,
    },
}
