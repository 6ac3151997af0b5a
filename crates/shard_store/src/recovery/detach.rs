//! Taking a shard out of the map with its mappings: one that is lost, or that goes to another map with its
//! data.
//!
//! Its copy stays as it is; `recover` with that copy takes it in again. What always holds: keys of ranges and
//! hashes are not left without a mapping; these must be placed elsewhere first.

use shard_map::{Catalog, Change, ChangeError, MapChange, MappingId, Name};

/// The changes that take a shard out: its pins are unpinned, ranges over a hash removed, and the shard
/// removed. The catalog refuses them if other mappings are on the shard.
pub fn detach(catalog: &Catalog, shard: &Name) -> Result<Vec<Change>, ChangeError> {
    let mut changes = Vec::new();
    for (map, mapping) in catalog.mappings_on(shard.as_str()) {
        let change = match &mapping {
            MappingId::Pin(key) => map.key_type().decode(key.as_bytes()).map(|key| MapChange::Unpin { key }),
            MappingId::Range(low) => {
                map.key_type().decode_bound(low.as_bytes()).map(|low| MapChange::RemoveRange { low })
            }
            MappingId::Virtual(_) => continue,
        };
        let change = change
            .map_err(|error| ChangeError::Map(shard_map::MapError::Key { map: map.name().clone(), error }))?;
        changes.push(Change::Map(map.name().clone(), change));
    }
    changes.push(Change::RemoveShard(shard.clone()));
    // What the catalog says against it is said now.
    catalog.apply(&changes)?;
    Ok(changes)
}
