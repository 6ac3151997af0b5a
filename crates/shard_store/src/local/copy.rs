//! What a shard knows of its catalog: whose it is, and each mapping that is on it.
//!
//! What always holds: a copy of an epoch has no mapping that the catalog had elsewhere at that epoch. It may
//! have fewer than the catalog had there: those are not open yet (see `choose_writes.rs`).

use shard_map::{Bound, Catalog, Epoch, Hashed, KeyType, MappingId, Name, Shard, ShardMap, State};
use std::collections::BTreeMap;

/// A shard's copy of its part of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalCopy {
    /// The catalog's name.
    pub catalog: Name,
    /// The catalog's id, by which it is known.
    pub catalog_id: [u8; 16],
    /// The epoch of the catalog that it was written for.
    pub epoch: Epoch,
    /// What the catalog knows of the shard.
    pub shard: Shard,
    /// The maps that have mappings here.
    pub maps: BTreeMap<Name, LocalMap>,
}

/// The part of a map that is on a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalMap {
    /// The type of its keys.
    pub key: KeyType,
    /// How they are hashed.
    pub hash: Option<Hashed>,
    /// Whether the map has ranges, here or on other shards: without a hash they hold all keys.
    pub has_ranges: bool,
    /// The mappings that are here.
    pub mappings: BTreeMap<MappingId, LocalMapping>,
}

/// A mapping that is on a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalMapping {
    /// The high bound of a range that does not go to the last key.
    pub high: Option<Bound>,
    /// What may be done with its keys.
    pub state: State,
    /// Since which epoch it is so.
    pub since: Epoch,
}

impl LocalCopy {
    /// What a shard of the catalog is to know; none if the catalog has no such shard.
    pub fn of(catalog: &Catalog, shard: &str) -> Option<Self> {
        let maps = catalog.maps().filter_map(|map| {
            let part = LocalMap::of(map, shard);
            (!part.mappings.is_empty()).then(|| (map.name().clone(), part))
        });
        Some(LocalCopy {
            catalog: catalog.name().clone(),
            catalog_id: catalog.id(),
            epoch: catalog.epoch(),
            shard: catalog.shard(shard)?.clone(),
            maps: maps.collect(),
        })
    }

    /// Without mappings.
    pub(crate) fn without_mappings(mut self) -> Self {
        self.maps.clear();
        self
    }

    /// Whether all but the epoch is the same.
    pub fn is_same(&self, other: &Self) -> bool {
        LocalCopy { epoch: other.epoch, ..self.clone() } == *other
    }

    /// A mapping of a map.
    pub fn mapping(&self, map: &str, mapping: &MappingId) -> Option<&LocalMapping> {
        self.maps.get(map)?.mappings.get(mapping)
    }

    /// All mappings, each with its map.
    pub fn mappings(&self) -> impl Iterator<Item = (&Name, &LocalMap, &MappingId, &LocalMapping)> {
        self.maps
            .iter()
            .flat_map(|(name, map)| map.mappings.iter().map(move |(id, mapping)| (name, map, id, mapping)))
    }

    /// Whether another copy has the same map with the same mapping in it.
    pub(crate) fn has_same(
        &self,
        name: &Name,
        map: &LocalMap,
        id: &MappingId,
        mapping: &LocalMapping,
    ) -> bool {
        self.maps.get(name).is_some_and(|there| {
            there.key == map.key && there.hash == map.hash && there.mappings.get(id) == Some(mapping)
        })
    }

    /// The mappings that `keep` accepts.
    pub(crate) fn filtered(
        mut self,
        keep: impl Fn(&Name, &LocalMap, &MappingId, &LocalMapping) -> bool,
    ) -> Self {
        for (name, map) in &mut self.maps {
            let whole = map.clone();
            map.mappings.retain(|id, mapping| keep(name, &whole, id, mapping));
        }
        self.maps.retain(|_, map| !map.mappings.is_empty());
        self
    }
}

impl LocalMap {
    fn of(map: &ShardMap, shard: &str) -> Self {
        let highs: BTreeMap<&Bound, Option<&Bound>> =
            map.ranges().map(|(low, range)| (low, range.high.as_ref())).collect();
        let here = map.mappings().filter(|(_, placement)| placement.shard.as_str() == shard);
        let mappings = here.map(|(id, placement)| {
            let high = match &id {
                MappingId::Range(low) => highs.get(low).copied().flatten().cloned(),
                MappingId::Pin(_) | MappingId::Virtual(_) => None,
            };
            (id, LocalMapping { high, state: placement.state, since: placement.since })
        });
        LocalMap {
            key: map.key_type().clone(),
            hash: map.virtual_shards().map(|layer| layer.hashed()),
            has_ranges: map.ranges().len() > 0,
            mappings: mappings.collect(),
        }
    }
}
