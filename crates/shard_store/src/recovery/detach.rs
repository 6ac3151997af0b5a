//! Taking a shard out of the map with its mappings: one that is lost, or that goes to another map with its
//! data.
//!
//! Its copy stays as it is; `recover` with that copy takes it in again. Mappings that go with it are thawed
//! first: what froze them can't reach the shard either, and an undo of it ends its claims elsewhere. What
//! always holds: keys of ranges and hashes are not left without a mapping; these must be placed elsewhere
//! first.

use shard_map::{Catalog, Change, ChangeError, MapChange, MappingId, Name, Selection};

/// The changes that take a shard out: its pins are unpinned, ranges over a hash removed, and the shard
/// removed. The catalog refuses them if other mappings are on the shard.
pub fn detach(catalog: &Catalog, shard: &Name) -> Result<Vec<Change>, ChangeError> {
    let mut changes = Vec::new();
    for (map, mapping) in catalog.mappings_on(shard.as_str()) {
        let key_type = map.key_type();
        let removed = match &mapping {
            MappingId::Pin(key) => key_type.decode(key.as_bytes()).map(|key| {
                let selection = Selection::Pin(key.clone());
                (selection, MapChange::Unpin { key })
            }),
            MappingId::Range(low) => key_type.decode_bound(low.as_bytes()).map(|low| {
                let selection = Selection::Range(low.clone());
                (selection, MapChange::RemoveRange { low })
            }),
            MappingId::Virtual(_) => continue,
        };
        let (mappings, removal) = removed
            .map_err(|error| ChangeError::Map(shard_map::MapError::Key { map: map.name().clone(), error }))?;
        let thaw = map.frozen_by(&mapping).map(|there| MapChange::Thaw { mappings, by: there.by.clone() });
        let of_map = thaw.into_iter().chain([removal]).map(|change| Change::Map(map.name().clone(), change));
        changes.extend(of_map);
    }
    changes.push(Change::RemoveShard(shard.clone()));
    // What the catalog says against it is said now.
    catalog.apply(&changes)?;
    Ok(changes)
}
