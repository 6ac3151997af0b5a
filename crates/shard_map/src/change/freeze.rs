//! Freezing mappings, thawing them, and the check of every change that what is frozen keeps its keys.
//!
//! What always holds: a mapping that was frozen before a change and is after it, by the same text, has the
//! same keys; whichever mapping the change named.

use super::error::ChangeError;
use super::place::{Selected, ids};
use crate::catalog::catalog::Catalog;
use crate::catalog::frozen::Frozen;
use crate::catalog::map::ShardMap;
use crate::catalog::mapping_id::MappingId;
use crate::catalog::stamp::{covered, pins_of_one_only};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Freezes mappings that are not.
pub(super) fn freeze(map: &mut ShardMap, selected: Selected<'_>, by: &str) -> Result<(), ChangeError> {
    let mappings = ids(map, selected)?;
    let frozen = Frozen::by(by);
    if !frozen.is_right() {
        return Err(ChangeError::FrozenBy(map.name.clone()));
    }
    check_free(map, &mappings)?;
    map.frozen.extend(mappings.into_iter().map(|mapping| (mapping, frozen.clone())));
    Ok(())
}

/// Thaws mappings that this text froze.
pub(super) fn thaw(map: &mut ShardMap, selected: Selected<'_>, by: &str) -> Result<(), ChangeError> {
    for mapping in ids(map, selected)? {
        match map.frozen.get(&mapping) {
            Some(there) if there.by == by => drop(map.frozen.remove(&mapping)),
            Some(there) => return Err(refused(map, &mapping, there)),
            None => {
                let (map, mapping) = (map.name.clone(), map.mapping_text(&mapping));
                return Err(ChangeError::NotFrozen { map, mapping });
            }
        }
    }
    Ok(())
}

/// Whether none of these is frozen.
pub(super) fn check_free(map: &ShardMap, mappings: &[MappingId]) -> Result<(), ChangeError> {
    if map.frozen.is_empty() {
        return Ok(());
    }
    let found = mappings.iter().find_map(|mapping| Some((mapping, map.frozen.get(mapping)?)));
    found.map_or(Ok(()), |(mapping, there)| Err(refused(map, mapping, there)))
}

/// Whether nothing of a map is frozen.
pub(super) fn check_nothing(map: &ShardMap) -> Result<(), ChangeError> {
    map.frozen.first_key_value().map_or(Ok(()), |(mapping, there)| Err(refused(map, mapping, there)))
}

/// Whether all that was frozen, and is, has its keys.
pub(crate) fn check_kept(before: &Catalog, after: &Catalog) -> Result<(), ChangeError> {
    for former in before.maps.values().filter(|map| !map.frozen.is_empty()) {
        // A map with something frozen is not removed.
        let Some(now) = after.maps.get(&former.name).filter(|now| !Arc::ptr_eq(now, former)) else {
            continue;
        };
        check_map(former, now)?;
    }
    Ok(())
}

fn check_map(before: &ShardMap, after: &ShardMap) -> Result<(), ChangeError> {
    let is_kept = |(mapping, there): &(&MappingId, &Frozen)| {
        after.frozen.get(mapping).is_some_and(|now| now.by == there.by)
    };
    let kept: BTreeSet<&MappingId> =
        before.frozen.iter().filter(is_kept).map(|(mapping, _)| mapping).collect();
    if kept.is_empty() {
        return Ok(());
    }
    let refused = |mapping: &MappingId| match before.frozen.get(mapping) {
        Some(there) => Err(refused(before, mapping, there)),
        None => Ok(()),
    };
    let is_key_same = before.key == after.key;
    let has_virtual = kept.iter().any(|mapping| matches!(mapping, MappingId::Virtual(_)));
    let hashed = |map: &ShardMap| map.virtual_shards.as_ref().map(|layer| layer.hashed);
    let is_hash_same =
        !has_virtual || hashed(before) == hashed(after) && covered(&before.ranges) == covered(&after.ranges);
    for mapping in &kept {
        let is_same = match mapping {
            MappingId::Pin(key) => after.pins.contains_key(key),
            MappingId::Range(low) => {
                after.ranges.get(low).map(|range| &range.high)
                    == before.ranges.get(low).map(|range| &range.high)
            }
            MappingId::Virtual(_) => is_hash_same,
        };
        if !is_key_same || !is_same {
            return refused(mapping);
        }
    }
    for key in pins_of_one_only(before, after) {
        for map in [before, after] {
            let below = map.route_below_pins(&key).map(|route| route.mapping);
            if let Some(below) = below.filter(|below| kept.contains(below)) {
                return refused(&below);
            }
        }
    }
    Ok(())
}

fn refused(map: &ShardMap, mapping: &MappingId, there: &Frozen) -> ChangeError {
    let state = map.placement(mapping).map(|placement| placement.state).unwrap_or_default();
    let (map, mapping) = (map.name.clone(), map.mapping_text(mapping));
    ChangeError::Frozen { map, mapping, state, by: there.by.clone() }
}

#[cfg(test)]
mod tests;
