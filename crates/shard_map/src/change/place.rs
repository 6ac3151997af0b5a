//! Where selected mappings are, and what they allow.

use super::error::ChangeError;
use super::pins::{encoded, not_pinned};
use super::ranges::{bound, no_range};
use crate::catalog::map::ShardMap;
use crate::catalog::map_error::MapError;
use crate::catalog::mapping_id::MappingId;
use crate::catalog::placement::Placement;
use crate::key::value::KeyValue;

/// Which mappings.
#[derive(Clone, Copy)]
pub(super) enum Selected<'a> {
    Pin(&'a [KeyValue]),
    Range(&'a [KeyValue]),
    Virtual(u32, u32),
}

/// Changes the placement of each selected mapping; all must be there.
pub(super) fn for_each(
    map: &mut ShardMap,
    selected: Selected<'_>,
    mut change: impl FnMut(&mut Placement),
) -> Result<(), ChangeError> {
    match selected {
        Selected::Pin(key) => {
            let encoded = encoded(map, key)?;
            match map.pins.get_mut(&encoded) {
                Some(placement) => change(placement),
                None => return Err(not_pinned(map, key)),
            }
        }
        Selected::Range(low) => {
            let at = bound(map, low)?;
            match map.ranges.get_mut(&at) {
                Some(range) => change(&mut range.placement),
                None => return Err(no_range(map, low, &at)),
            }
        }
        Selected::Virtual(first, last) => {
            let Some(layer) = &mut map.virtual_shards else {
                return Err(ChangeError::NoHash(map.name.clone()));
            };
            let count = layer.hashed.count;
            if first > last || last >= count {
                return Err(MapError::NoVirtualShard { map: map.name.clone(), first, last, count }.into());
            }
            layer.placements[first as usize..=last as usize].iter_mut().for_each(change);
        }
    }
    Ok(())
}

/// The ids of the selected mappings; all must be there.
pub(super) fn ids(map: &mut ShardMap, selected: Selected<'_>) -> Result<Vec<MappingId>, ChangeError> {
    // What is there is found as it is for a change.
    for_each(map, selected, |_| {})?;
    Ok(match selected {
        Selected::Pin(key) => vec![MappingId::Pin(encoded(map, key)?)],
        Selected::Range(low) => vec![MappingId::Range(bound(map, low)?)],
        Selected::Virtual(first, last) => (first..=last).map(MappingId::Virtual).collect(),
    })
}
