//! A catalog as it was read, and when.
//!
//! What always holds: both instants are from before the read began, so a shard that lost a mapping later than
//! that is the only one that this can be wrong about.

use base::Ticks;
use shard_map::{Catalog, KeyValue, Name, Route, RouteError, Shard, ShardMap, State};
use std::sync::Arc;
use std::time::Duration;

/// A catalog as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRead {
    /// The catalog.
    pub catalog: Catalog,
    /// The wall clock when its read began.
    pub read_at: Ticks,
    /// Monotonic time when its read began.
    pub read_since: Duration,
}

/// A key, or a map, without a route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The catalog has no such map.
    #[error("catalog `{catalog}` has no map `{map}`; check the name")]
    NoMap {
        /// The catalog.
        catalog: Name,
        /// The name.
        map: String,
    },
    /// No mapping has the key, or it is none of the map's type.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A mapping is on a shard that the catalog lacks, which a right catalog never has.
    #[error("catalog `{catalog}` has no shard `{shard}`")]
    NoShard {
        /// The catalog.
        catalog: Name,
        /// The shard.
        shard: Name,
    },
}

impl LookupError {
    /// Whether a newer map may have another answer.
    pub fn may_change(&self) -> bool {
        !matches!(self, LookupError::Route(RouteError::Key(_)))
    }
}

impl MapRead {
    /// How old it is.
    pub fn age(&self, monotonic: Duration) -> Duration {
        monotonic.saturating_sub(self.read_since)
    }

    /// A map of the catalog.
    pub fn map(&self, map: &str) -> Result<&Arc<ShardMap>, LookupError> {
        let no_map = || LookupError::NoMap { catalog: self.catalog.name().clone(), map: map.to_owned() };
        self.catalog.map(map).ok_or_else(no_map)
    }

    /// Where a key is. It costs no allocation for keys of at most 32 bytes, and takes no lock.
    pub fn route(&self, map: &str, key: &[KeyValue]) -> Result<Route<'_>, LookupError> {
        Ok(self.map(map)?.route(key)?)
    }

    /// The shard of a route, and what may be done with the key there: what shard and mapping both allow.
    pub fn shard_of(&self, route: &Route<'_>) -> Result<(&Shard, State), LookupError> {
        let name = &route.placement.shard;
        let no_shard = || LookupError::NoShard { catalog: self.catalog.name().clone(), shard: name.clone() };
        let shard = self.catalog.shard(name.as_str()).ok_or_else(no_shard)?;
        Ok((shard, shard.state.max(route.placement.state)))
    }
}
