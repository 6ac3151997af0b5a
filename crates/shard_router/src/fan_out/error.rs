//! Why a fan-out failed.

use super::part::PartRefusal;
use crate::map::error::MapReadError;
use crate::map::map_read::LookupError;
use shard_map::Name;
use std::time::Duration;

/// Why one shard did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardFailure<E> {
    /// The query failed.
    #[error("{0}")]
    Failed(E),
    /// There was no connection.
    #[error("{0}")]
    Connection(String),
    /// Its answer may lack rows, with the newest map, too, if a newer one could help.
    #[error("{0}")]
    Part(PartRefusal),
    /// It took too long.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// Its rows are not in the order that they are merged by.
    #[error("its rows are not in the order that they are merged by; sort them there")]
    OutOfOrder,
}

impl<E> ShardFailure<E> {
    /// Whether a newer map may have another answer.
    pub fn is_late(&self) -> bool {
        matches!(self, ShardFailure::Part(refusal) if refusal.is_late())
    }
}

/// Why there is no answer of all shards.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FanOutError<E> {
    /// There is no map.
    #[error(transparent)]
    Map(#[from] MapReadError),
    /// The map is not there.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// A shard did not answer, and all are needed.
    #[error("shard `{shard}`: {failure}")]
    Shard {
        /// The shard.
        shard: Name,
        /// Why.
        failure: ShardFailure<E>,
    },
    /// An earlier call of a merge failed or was given up, and rows that it had taken are gone.
    #[error("the merge ended with an earlier error, or a call of it was given up; query again")]
    Broken,
}

impl<E> FanOutError<E> {
    /// Whether a newer map may have another answer.
    pub fn is_late(&self) -> bool {
        matches!(self, FanOutError::Shard { failure, .. } if failure.is_late())
    }
}
