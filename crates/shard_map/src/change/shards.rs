//! Adding, changing and removing a shard.

use super::error::ChangeError;
use crate::catalog::catalog::Catalog;
use crate::catalog::shard::Shard;
use crate::name::Name;

/// Adds a shard of a new name.
pub(super) fn add(catalog: &mut Catalog, shard: &Shard) -> Result<(), ChangeError> {
    if let Some(there) = catalog.shards.get(&shard.name) {
        return Err(ChangeError::ShardExists {
            catalog: catalog.name.clone(),
            shard: shard.name.clone(),
            location: there.location.clone(),
        });
    }
    catalog.shards.insert(shard.name.clone(), shard.clone());
    Ok(())
}

/// Replaces what is known of a shard.
pub(super) fn change(catalog: &mut Catalog, shard: &Shard) -> Result<(), ChangeError> {
    match catalog.shards.get_mut(&shard.name) {
        Some(there) => {
            *there = shard.clone();
            Ok(())
        }
        None => Err(no_shard(catalog, &shard.name)),
    }
}

/// Removes a shard that no mapping is on.
pub(super) fn remove(catalog: &mut Catalog, name: &Name) -> Result<(), ChangeError> {
    let mut on_it = catalog.mappings_on(name.as_str());
    if let Some((map, mapping)) = on_it.next() {
        return Err(ChangeError::ShardInUse {
            shard: name.clone(),
            map: map.name().clone(),
            mapping: map.mapping_text(&mapping),
            count: 1 + on_it.count(),
        });
    }
    drop(on_it);
    match catalog.shards.remove(name) {
        Some(_) => Ok(()),
        None => Err(no_shard(catalog, name)),
    }
}

fn no_shard(catalog: &Catalog, shard: &Name) -> ChangeError {
    ChangeError::NoShard { catalog: catalog.name.clone(), shard: shard.clone() }
}
