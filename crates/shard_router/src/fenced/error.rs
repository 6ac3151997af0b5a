//! Why an operation of the router failed.

use super::routed::NoShard;
use crate::map::error::MapReadError;
use crate::map::map_read::LookupError;
use crate::pool::pool::PoolError;
use shard_map::Name;
use shard_store::Refusal;
use std::time::Duration;

/// Why an operation failed. All but [`RouterError::MayBeDone`] and [`RouterError::TimedOut`] did nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RouterError<E> {
    /// There is no map that can be used.
    #[error(transparent)]
    Map(#[from] MapReadError),
    /// The key has no route.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Keys of two shards, none, or too many.
    #[error("{0}")]
    Keys(String),
    /// There is no connection.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The fence refused it, with the newest map, too, if a newer one could help; or the map says that it is
    /// not allowed now.
    #[error("{refusal}")]
    Refused {
        /// The shard, if it was one that refused.
        shard: Option<Name>,
        /// Why.
        refusal: Refusal,
    },
    /// The map was too old to send with, and so was a newer one: its reads take too long.
    #[error("shard `{shard}`: the map was too old by the time of the request; is its home slow?")]
    MapTooOld {
        /// The shard.
        shard: Name,
    },
    /// It took too long, and may have been done. It was not tried again.
    #[error("shard `{shard}`: no answer within {operation_for:?}; it may have been done")]
    TimedOut {
        /// The shard.
        shard: Name,
        /// How long it was waited for.
        operation_for: Duration,
    },
    /// The shard failed; nothing was done.
    #[error("shard `{shard}`: {error}")]
    Failed {
        /// The shard.
        shard: Name,
        /// Why.
        error: E,
    },
    /// The shard failed, and it may have been done. It was not tried again: look before you do.
    #[error("shard `{shard}`: {error}; it may have been done")]
    MayBeDone {
        /// The shard.
        shard: Name,
        /// Why.
        error: E,
    },
}

impl<E> RouterError<E> {
    /// Whether the operation, or a part of it, may have been done. If not, nothing of it was.
    pub fn may_be_done(&self) -> bool {
        matches!(self, RouterError::MayBeDone { .. } | RouterError::TimedOut { .. })
    }

    pub(crate) fn of(error: NoShard) -> Self {
        match error {
            NoShard::Lookup(error) => RouterError::Lookup(error),
            NoShard::State(refusal) => RouterError::Refused { shard: None, refusal },
            error @ (NoShard::TwoShards { .. } | NoShard::Count(_)) => RouterError::Keys(error.to_string()),
        }
    }
}
