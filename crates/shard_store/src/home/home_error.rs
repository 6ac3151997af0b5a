//! What went wrong with a home, and what helps.

use super::entry::FORMAT;
use crate::error::StoreError;
use shard_map::{ChangeError, DocumentError, Epoch, Name, PatchError, UndoError};

/// A failure of a home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The place failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no catalog.
    #[error("{place}: there is no shard map here; create one, or name another place")]
    NoCatalog {
        /// The place.
        place: String,
    },
    /// There is one already.
    #[error("{place}: catalog `{name}` is here already; name another place")]
    Exists {
        /// The place.
        place: String,
        /// Its name.
        name: String,
    },
    /// A newer version wrote it.
    #[error(
        "{place}: record {key} has format {format}, and this version reads formats up to {FORMAT}; use a newer version"
    )]
    Newer {
        /// The place.
        place: String,
        /// The record.
        key: String,
        /// Its format.
        format: u64,
    },
    /// A record is missing or is not what it should be.
    #[error(
        "{place}: record {key} is damaged: {what}; restore the place, or recover the map from its shards"
    )]
    Damaged {
        /// The place.
        place: String,
        /// The record.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// The log does not fit together.
    #[error("{place}: the log is damaged: {error}; restore the place, or recover the map from its shards")]
    Log {
        /// The place.
        place: String,
        /// What does not fit.
        error: PatchError,
    },
    /// A snapshot is no catalog.
    #[error("{place}: the snapshot of epoch {epoch} is damaged: {error}; remove its record")]
    Snapshot {
        /// The place.
        place: String,
        /// Of which epoch.
        epoch: Epoch,
        /// What is wrong.
        error: Box<DocumentError>,
    },
    /// The catalog in memory is not the one of this home.
    #[error("{place} has catalog `{there}`, and the change is one of catalog `{given}`, with another id")]
    OtherCatalog {
        /// The place.
        place: String,
        /// Its catalog.
        there: Name,
        /// The other.
        given: Name,
    },
    /// The change can't be made.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The change can't be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// Others change it all the time.
    #[error("{place}: others changed the map {attempts} times meanwhile; try again")]
    Busy {
        /// The place.
        place: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// Something changed that a step relies on.
    #[error("{place}: the map is at epoch {at}, and the step is for epoch {expected}; look at it again")]
    Moved {
        /// The place.
        place: String,
        /// Its epoch.
        at: Epoch,
        /// The epoch that was expected.
        expected: Epoch,
    },
}
