//! Why an operation of a backend failed.

use crate::value::row::RowError;
use shard_map::{Epoch, MappingId, Name};
use shard_store::{Refusal, StoreError};

/// What failed where. All but [`BackendError::Store`] left everything as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// The place failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The fence refused the operation.
    #[error("{place}: {refusal}")]
    Fence {
        /// Where.
        place: String,
        /// Why.
        refusal: Refusal,
    },
    /// A copy to a shard that lets clients write the mapping's rows.
    #[error("{place}: map `{map}`: {mapping} takes writes of clients here, so nothing is copied over them")]
    TakesWrites {
        /// Where.
        place: String,
        /// The map.
        map: Name,
        /// The mapping.
        mapping: MappingId,
    },
    /// A write or claim of a move that another one followed, or that did not claim the mapping.
    #[error("{place}: map `{map}`: {mapping} is claimed here by epoch {there}, and not by {given}")]
    Claimed {
        /// Where.
        place: String,
        /// The map.
        map: Name,
        /// The mapping.
        mapping: MappingId,
        /// The stored claim; 0: none.
        there: Epoch,
        /// The claim of the operation.
        given: Epoch,
    },
    /// A write or claim of a move that has ended here.
    #[error("{place}: map `{map}`: the claim of {mapping} by epoch {given} was released; its move has ended")]
    Released {
        /// Where.
        place: String,
        /// The map.
        map: Name,
        /// The mapping.
        mapping: MappingId,
        /// The claim of the operation.
        given: Epoch,
    },
    /// A row that is none of its table.
    #[error("{place}: {error}")]
    Row {
        /// Where.
        place: String,
        /// Why not.
        error: RowError,
    },
    /// A row of another shardlet than the one that is written.
    #[error("{place}: the key {key} of table `{table}` is not in {shardlet}")]
    OtherShardlet {
        /// Where.
        place: String,
        /// The table.
        table: String,
        /// The row's key.
        key: String,
        /// The shardlet that is written.
        shardlet: String,
    },
    /// A stored value that is none of its column, or a value that the backend can't store.
    #[error("{place}: column `{column}` of table `{table}`: {what}")]
    Value {
        /// Where.
        place: String,
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What is wrong with it.
        what: String,
    },
    /// More rows in a batch than there may be.
    #[error("{place}: a batch of {count} rows is longer than {max}")]
    Batch {
        /// Where.
        place: String,
        /// Its rows.
        count: usize,
        /// At most so many.
        max: usize,
    },
}

impl BackendError {
    /// Whether the operation may have been done, or a part of it. If not, nothing of it was.
    pub fn may_be_done(&self) -> bool {
        matches!(self, BackendError::Store(error) if error.may_be_done)
    }
}
