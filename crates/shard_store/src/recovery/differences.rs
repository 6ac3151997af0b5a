//! What differs between the map and the shards' copies, for people to read and to choose by.

use super::choose_writes::ShardCopy;
use crate::local::copy::{LocalCopy, LocalMapping};
use shard_map::{Catalog, Epoch, MappingId, Name};
use std::collections::BTreeMap;
use std::fmt;

/// A difference, at one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The shard's name in the map.
    pub shard: Name,
    /// What differs.
    pub kind: DifferenceKind,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The shard can't be reached.
    Unreachable(String),
    /// It has no copy.
    NoCopy,
    /// It has the copy of a shard of another catalog, or of another shard: the catalog's name and the
    /// shard's.
    Another(Name, Name),
    /// Its copy is of a later epoch than the map.
    Later(Epoch),
    /// Location, state or tags are others.
    Shard,
    /// A mapping is not the same.
    Mapping {
        /// The map.
        map: Name,
        /// The mapping.
        mapping: MappingId,
        /// The mapping in words, as far as the map knows it.
        shown: String,
        /// What the map has of it on this shard.
        in_map: Option<LocalMapping>,
        /// What the shard has.
        in_shard: Option<LocalMapping>,
    },
}

/// All differences, shard by shard.
pub fn differences(catalog: &Catalog, copies: &BTreeMap<Name, ShardCopy>) -> Vec<Difference> {
    let mut found = Vec::new();
    for shard in catalog.shards() {
        let mut add = |kind| found.push(Difference { shard: shard.name.clone(), kind });
        let Some(target) = LocalCopy::of(catalog, shard.name.as_str()) else { continue };
        match copies.get(&shard.name) {
            None => add(DifferenceKind::Unreachable("it was not asked for".to_owned())),
            Some(ShardCopy::Unreachable(why)) => add(DifferenceKind::Unreachable(why.clone())),
            Some(ShardCopy::Read(None)) => add(DifferenceKind::NoCopy),
            Some(ShardCopy::Read(Some(stored))) => {
                let copy = &stored.copy;
                if copy.catalog_id != target.catalog_id || copy.shard.name != target.shard.name {
                    add(DifferenceKind::Another(copy.catalog.clone(), copy.shard.name.clone()));
                    continue;
                }
                if copy.epoch > catalog.epoch() {
                    add(DifferenceKind::Later(copy.epoch));
                }
                if copy.shard != target.shard {
                    add(DifferenceKind::Shard);
                }
                mappings(catalog, &target, copy, &mut add);
            }
        }
    }
    found
}

fn mappings(catalog: &Catalog, target: &LocalCopy, copy: &LocalCopy, add: &mut impl FnMut(DifferenceKind)) {
    let mut all: BTreeMap<(&Name, &MappingId), ()> = BTreeMap::new();
    for (name, _, id, _) in target.mappings().chain(copy.mappings()) {
        all.insert((name, id), ());
    }
    for (map, id) in all.into_keys() {
        let (in_map, in_shard) = (target.mapping(map.as_str(), id), copy.mapping(map.as_str(), id));
        if in_map == in_shard {
            continue;
        }
        let known = catalog.map(map.as_str());
        add(DifferenceKind::Mapping {
            map: map.clone(),
            mapping: id.clone(),
            shown: known.map_or_else(|| id.to_string(), |map| map.mapping_text(id)),
            in_map: in_map.cloned(),
            in_shard: in_shard.cloned(),
        });
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shard = &self.shard;
        let state = |mapping: &Option<LocalMapping>| match mapping {
            None => "not there".to_owned(),
            Some(mapping) => format!("{} since epoch {}", mapping.state, mapping.since),
        };
        match &self.kind {
            DifferenceKind::Unreachable(why) => write!(out, "shard `{shard}` can't be reached: {why}"),
            DifferenceKind::NoCopy => write!(out, "shard `{shard}` has no copy of its part of the map"),
            DifferenceKind::Another(catalog, there) => {
                write!(out, "at the place of shard `{shard}` there is shard `{there}` of catalog `{catalog}`")
            }
            DifferenceKind::Later(epoch) => {
                write!(out, "shard `{shard}` has a copy of epoch {epoch}, which is later than the map")
            }
            DifferenceKind::Shard => {
                write!(out, "shard `{shard}` knows another location, state or tags of itself")
            }
            DifferenceKind::Mapping { map, shown, in_map, in_shard, .. } => {
                let (in_map, in_shard) = (state(in_map), state(in_shard));
                write!(out, "map `{map}`: {shown} is {in_map} in the map, and {in_shard} on shard `{shard}`")
            }
        }
    }
}
