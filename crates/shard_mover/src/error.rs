//! What went wrong with a move, and what helps.
//!
//! What always holds: an error leaves the move in its state, from which it is gone on with; what ends a move
//! is a state with its reason, no error.

use crate::log::id::MoveId;
use crate::log::state::FORMAT;
use shard_backend::BackendError;
use shard_map::{ChangeError, Name};
use shard_store::{HomeError, PublishError, StoreError};

/// A failure of a move or a plan.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The map's home failed.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The place of the records failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Shards could not be brought up to the map.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// A shard's rows could not be read or written.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A shard has not yet what the map says.
    #[error(
        "shard `{shard}` does not have epoch {epoch} of the map yet: {why}; the move goes on once it does"
    )]
    NotPublished {
        /// The shard.
        shard: Name,
        /// The epoch that it is to have.
        epoch: shard_map::Epoch,
        /// Why not.
        why: String,
    },
    /// There is no connection to a shard's rows.
    #[error("no connection to the rows of shard `{0}` is set up")]
    NoBackend(Name),
    /// The move can't begin.
    #[error(transparent)]
    Refused(#[from] crate::plan::refusal::Refusal),
    /// There is no such move.
    #[error("{place}: there is no move {id}; `status` lists all")]
    NoMove {
        /// The place.
        place: String,
        /// The id.
        id: MoveId,
    },
    /// What was asked for can't be done in the state in which the move is.
    #[error("move {id} is {state}: {what}")]
    WrongState {
        /// The move.
        id: MoveId,
        /// Its state.
        state: &'static str,
        /// Why not, and what helps.
        what: String,
    },
    /// A newer version put a record.
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
    #[error("{place}: record {key} is damaged: {what}")]
    Damaged {
        /// The place.
        place: String,
        /// The record.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// More parents than a check of orphans can look at.
    #[error("rule {rule}: its parents are more than {passes} passes over the tables can look at")]
    TooManyParents {
        /// The rule.
        rule: String,
        /// Passes, at most.
        passes: u128,
    },
    /// The states change all the time.
    #[error("move {id} changed {steps} times and is not at its end; look at its state")]
    Restless {
        /// The move.
        id: MoveId,
        /// How often.
        steps: usize,
    },
}

impl From<ChangeError> for MoveError {
    fn from(error: ChangeError) -> Self {
        MoveError::Home(error.into())
    }
}

impl MoveError {
    /// Whether the same may succeed later. If not, nothing is gained by trying again.
    pub fn may_pass(&self) -> bool {
        match self {
            MoveError::Home(error) => {
                matches!(error, HomeError::Store(_) | HomeError::Busy { .. } | HomeError::Moved { .. })
            }
            MoveError::Publish(PublishError::Home(error)) => matches!(error, HomeError::Store(_)),
            MoveError::Publish(PublishError::Busy(_)) => true,
            MoveError::Store(_) | MoveError::NotPublished { .. } => true,
            MoveError::Backend(error) => !is_for_ever(error),
            _ => false,
        }
    }
}

/// Whether rows are what they must not be, so that no copy of them will succeed.
pub(crate) fn is_for_ever(error: &BackendError) -> bool {
    use BackendError::{OtherShardlet, Row, Value};
    matches!(error, Row { .. } | OtherShardlet { .. } | Value { .. })
}
