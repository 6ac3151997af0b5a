//! Adding and removing a map, and taking one to change it.

use super::error::ChangeError;
use super::freeze::check_nothing;
use crate::catalog::catalog::Catalog;
use crate::catalog::map::ShardMap;
use crate::name::Name;
use std::sync::Arc;

/// Adds a map of a new name.
pub(super) fn add(catalog: &mut Catalog, map: &ShardMap) -> Result<(), ChangeError> {
    if catalog.maps.contains_key(&map.name) {
        let (catalog, map) = (catalog.name.clone(), map.name.clone());
        return Err(ChangeError::MapExists { catalog, map });
    }
    catalog.maps.insert(map.name.clone(), Arc::new(map.clone()));
    Ok(())
}

/// Removes a map with its mappings, none of which is frozen.
pub(super) fn remove(catalog: &mut Catalog, name: &Name) -> Result<(), ChangeError> {
    if let Some(map) = catalog.maps.get(name) {
        check_nothing(map)?;
    }
    match catalog.maps.remove(name) {
        Some(_) => Ok(()),
        None => Err(ChangeError::NoMap { catalog: catalog.name.clone(), map: name.clone() }),
    }
}

/// The map, as a copy of its own.
pub(super) fn to_change<'a>(catalog: &'a mut Catalog, name: &Name) -> Result<&'a mut ShardMap, ChangeError> {
    let catalog_name = catalog.name.clone();
    match catalog.maps.get_mut(name) {
        Some(map) => Ok(Arc::make_mut(map)),
        None => Err(ChangeError::NoMap { catalog: catalog_name, map: name.clone() }),
    }
}
