//! The part of a map that is on one shard: what a shard's answer must be restricted to.
//!
//! What always holds: of the rows of one key, exactly one part of a map holds them. A shard may have others:
//! a move copies rows before the map has them there, and deletes them behind it.

use crate::map::map_read::{LookupError, MapRead};
use shard_map::{KeyValue, MappingId, Name, Shard, ShardMap, State};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The part of a map that is on one shard.
#[derive(Clone, Debug)]
pub struct ShardPart {
    read: Arc<MapRead>,
    map: Arc<ShardMap>,
    shard: Shard,
    mappings: Vec<MappingId>,
    state: State,
}

impl ShardPart {
    /// The parts of a map, a shard each, in the order of the shards' names.
    pub(crate) fn all(read: &Arc<MapRead>, map: &str) -> Result<Vec<Self>, LookupError> {
        let map = read.map(map)?;
        let mut found: BTreeMap<Name, (Vec<MappingId>, State)> = BTreeMap::new();
        for (mapping, placement) in map.mappings() {
            let (mappings, state) = found.entry(placement.shard.clone()).or_default();
            mappings.push(mapping);
            *state = placement.state.max(*state);
        }
        let part = |(name, (mappings, state)): (Name, (Vec<MappingId>, State))| {
            let no_shard =
                || LookupError::NoShard { catalog: read.catalog.name().clone(), shard: name.clone() };
            let shard = read.catalog.shard(name.as_str()).ok_or_else(no_shard)?.clone();
            let state = shard.state.max(state);
            Ok(ShardPart { read: read.clone(), map: map.clone(), shard, mappings, state })
        };
        found.into_iter().map(part).collect()
    }

    /// The shard.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The map.
    pub fn map(&self) -> &Arc<ShardMap> {
        &self.map
    }

    /// The map's mappings that are on the shard.
    pub fn mappings(&self) -> &[MappingId] {
        &self.mappings
    }

    /// The least that is allowed with any of them: an answer of an offline one may lack rows.
    pub fn state(&self) -> State {
        self.state
    }

    pub(crate) fn read(&self) -> &Arc<MapRead> {
        &self.read
    }

    /// Whether the rows of this key are the shard's: all others that it has are left out.
    pub fn holds(&self, key: &[KeyValue]) -> bool {
        self.map.route(key).is_ok_and(|route| route.placement.shard == self.shard.name)
    }
}
