//! A catalog: shards, and the maps that share them.
//!
//! What always holds: all mappings are on shards of the catalog; no change is made in place, so what holds a
//! catalog sees one epoch of it. Cloning copies no map.

use super::map::ShardMap;
use super::map_error::MapError;
use super::placement::Epoch;
use super::shard::{Shard, ShardError};
use crate::limits::{EPOCH_MAX, MAPS_MAX, SHARDS_MAX};
use crate::name::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Shards and maps at one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    pub(crate) name: Name,
    pub(crate) id: [u8; 16],
    pub(crate) epoch: Epoch,
    pub(crate) shards: BTreeMap<Name, Shard>,
    pub(crate) maps: BTreeMap<Name, Arc<ShardMap>>,
}

/// What is wrong with a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// A map is not right in itself.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A shard is not right in itself.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A mapping is on a shard that is not there.
    #[error(
        "map `{map}` places {mapping} on shard `{shard}`, which catalog `{catalog}` does not have; add it first"
    )]
    UnknownShard {
        /// The catalog.
        catalog: Name,
        /// The map.
        map: Name,
        /// The mapping.
        mapping: String,
        /// The shard that is not there.
        shard: Name,
    },
    /// Too many shards or maps.
    #[error("catalog `{0}` has more than {SHARDS_MAX} shards or {MAPS_MAX} maps; use a second catalog")]
    TooLarge(Name),
    /// The epochs are used up.
    #[error("catalog `{0}` is at epoch {1}, and the highest is {EPOCH_MAX}")]
    EpochTooHigh(Name, Epoch),
}

impl Catalog {
    /// Without shards and maps, at epoch 0. The id tells it from all others: 16 random bytes.
    pub fn new(name: Name, id: [u8; 16]) -> Self {
        Catalog { name, id, epoch: Epoch(0), shards: BTreeMap::new(), maps: BTreeMap::new() }
    }

    /// A catalog of shards and maps that are as they are since the epochs that they say: one that was put
    /// together from what is known of another. All of it is checked.
    pub fn from_parts(
        name: Name,
        id: [u8; 16],
        epoch: Epoch,
        shards: impl IntoIterator<Item = Shard>,
        maps: impl IntoIterator<Item = ShardMap>,
    ) -> Result<Self, CatalogError> {
        let shards = shards.into_iter().map(|shard| (shard.name.clone(), shard)).collect();
        let maps = maps.into_iter().map(|map| (map.name.clone(), Arc::new(map))).collect();
        let catalog = Catalog { name, id, epoch, shards, maps };
        catalog.check()?;
        Ok(catalog)
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Its id, which no other catalog has.
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// The number of its last change.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Its shards, in order of their names.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = &Shard> {
        self.shards.values()
    }

    /// A shard.
    pub fn shard(&self, name: &str) -> Option<&Shard> {
        self.shards.get(name)
    }

    /// Its maps, in order of their names.
    pub fn maps(&self) -> impl ExactSizeIterator<Item = &Arc<ShardMap>> {
        self.maps.values()
    }

    /// A map.
    pub fn map(&self, name: &str) -> Option<&Arc<ShardMap>> {
        self.maps.get(name)
    }

    /// The same at a later epoch, with all shards and mappings as they are: for a catalog that was rebuilt,
    /// whose lost epochs must not be used again. An earlier epoch leaves it as it is.
    pub fn at_epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = self.epoch.max(epoch);
        self
    }

    /// The mappings on a shard: each with its map.
    pub fn mappings_on<'a>(
        &'a self,
        shard: &'a str,
    ) -> impl Iterator<Item = (&'a ShardMap, super::mapping_id::MappingId)> {
        self.maps.values().flat_map(move |map| {
            let on_it = map.mappings().filter(move |(_, placement)| placement.shard.as_str() == shard);
            on_it.map(|(mapping, _)| (map.as_ref(), mapping))
        })
    }

    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        if self.epoch.0 > EPOCH_MAX {
            return Err(CatalogError::EpochTooHigh(self.name.clone(), self.epoch));
        }
        if self.shards.len() > SHARDS_MAX || self.maps.len() > MAPS_MAX {
            return Err(CatalogError::TooLarge(self.name.clone()));
        }
        for shard in self.shards.values() {
            shard.check()?;
        }
        for map in self.maps.values() {
            map.check()?;
            self.check_shards(map)?;
        }
        Ok(())
    }

    fn check_shards(&self, map: &ShardMap) -> Result<(), CatalogError> {
        if map.placements().all(|placement| self.shards.contains_key(&placement.shard)) {
            return Ok(());
        }
        let unknown = |(mapping, placement): (super::mapping_id::MappingId, &super::placement::Placement)| {
            (!self.shards.contains_key(&placement.shard)).then(|| (mapping, placement.shard.clone()))
        };
        let Some((mapping, shard)) = map.mappings().find_map(unknown) else { return Ok(()) };
        Err(CatalogError::UnknownShard {
            catalog: self.name.clone(),
            map: map.name.clone(),
            mapping: map.mapping_text(&mapping),
            shard,
        })
    }
}
