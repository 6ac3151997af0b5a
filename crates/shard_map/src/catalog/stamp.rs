//! Gives what a change made different its epoch: the one place where `since` rises.
//!
//! A shard refuses a write whose mapping or `since` is not what the shard has (the fence). That is enough
//! only if a mapping's `since` rises whenever any key comes to it or leaves it, whichever mapping was named
//! in the change:
//!
//! * a mapping is new, or its shard, state or high bound is another;
//! * a key gets or loses a pin: the mapping below, which loses or gets the key, is stamped;
//! * the ranges together hold other keys than before: keys come from virtual shards or go there, and any of
//!   these may be concerned, so all are stamped;
//! * keys are encoded or hashed in another way: all that depends on it is stamped.
//!
//! A mapping that is frozen or thawed is the same for clients, so its `since` stays.
//!
//! What always holds: if a key's mapping at an earlier epoch is there at a later one with the same `since`,
//! it is the key's mapping then, too, on the same shard in the same state.

use super::catalog::Catalog;
use super::frozen::Frozen;
use super::map::{Range, ShardMap};
use super::mapping_id::MappingId;
use super::placement::{Epoch, Placement};
use crate::key::encoded::{Bound, EncodedKey};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Stamps all that differs from `before`, and gives what does not its former epoch; whether anything differs.
pub(crate) fn stamp_catalog(before: &Catalog, after: &mut Catalog, epoch: Epoch) -> bool {
    let mut is_changed = before.shards.len() != after.shards.len() || before.maps.len() != after.maps.len();
    for (name, shard) in &mut after.shards {
        match before.shards.get(name) {
            Some(former) if former.is_same(shard) => shard.since = former.since,
            _ => {
                shard.since = epoch;
                is_changed = true;
            }
        }
    }
    for (name, map) in &mut after.maps {
        match before.maps.get(name) {
            Some(former) if Arc::ptr_eq(former, map) => {}
            former => is_changed |= stamp_map(former.map(Arc::as_ref), Arc::make_mut(map), epoch),
        }
    }
    is_changed
}

/// The same for a map.
fn stamp_map(before: Option<&ShardMap>, after: &mut ShardMap, epoch: Epoch) -> bool {
    let Some(before) = before.filter(|before| before.key == after.key) else {
        stamp_all(after, epoch);
        return true;
    };
    let mut is_changed = after.pins.len() != before.pins.len() || after.ranges.len() != before.ranges.len();
    for (key, placement) in &mut after.pins {
        is_changed |= stamp_placement(before.pins.get(key), placement, epoch);
    }
    for (low, range) in &mut after.ranges {
        let former = before.ranges.get(low).filter(|former| former.high == range.high);
        is_changed |= stamp_placement(former.map(|former| &former.placement), &mut range.placement, epoch);
    }
    is_changed |= stamp_virtual_shards(before, after, epoch);
    for key in pins_of_one_only(before, after) {
        let below = after.route_below_pins(&key).map(|route| route.mapping);
        stamp_mapping(after, below, epoch);
    }
    is_changed |= stamp_frozen(&before.frozen, &mut after.frozen, epoch);
    after.since = if is_changed { epoch } else { before.since };
    is_changed
}

/// Whether it is another than before.
fn stamp_placement(before: Option<&Placement>, after: &mut Placement, epoch: Epoch) -> bool {
    match before {
        Some(before) if before.is_same_place(after) => {
            after.since = before.since;
            false
        }
        _ => {
            after.since = epoch;
            true
        }
    }
}

/// Whether anything is frozen or thawed, or frozen by something else.
fn stamp_frozen(
    before: &BTreeMap<MappingId, Frozen>,
    after: &mut BTreeMap<MappingId, Frozen>,
    epoch: Epoch,
) -> bool {
    let mut is_changed = before.len() != after.len();
    for (mapping, frozen) in after {
        match before.get(mapping) {
            Some(former) if former.by == frozen.by => frozen.since = former.since,
            _ => {
                frozen.since = epoch;
                is_changed = true;
            }
        }
    }
    is_changed
}

fn stamp_virtual_shards(before: &ShardMap, after: &mut ShardMap, epoch: Epoch) -> bool {
    let is_range_cover_same = covered(&before.ranges) == covered(&after.ranges);
    let (former, layer) = match (&before.virtual_shards, &mut after.virtual_shards) {
        (former, None) => return former.is_some(),
        (former, Some(layer)) => {
            let is_comparable =
                |former: &&super::map::VirtualShards| former.hashed == layer.hashed && is_range_cover_same;
            (former.as_ref().filter(is_comparable), layer)
        }
    };
    let mut is_changed = former.is_none();
    for (number, placement) in layer.placements.iter_mut().enumerate() {
        let former = former.and_then(|former| former.placements.get(number));
        is_changed |= stamp_placement(former, placement, epoch);
    }
    is_changed
}

/// The intervals of keys that ranges hold, neighbours joined.
pub(crate) fn covered(ranges: &BTreeMap<Bound, Range>) -> Vec<(&Bound, Option<&Bound>)> {
    let mut intervals: Vec<(&Bound, Option<&Bound>)> = Vec::new();
    for (low, range) in ranges {
        match intervals.last_mut() {
            Some((_, high)) if *high == Some(low) => *high = range.high.as_ref(),
            _ => intervals.push((low, range.high.as_ref())),
        }
    }
    intervals
}

/// Keys that are pinned before or after, and not both.
pub(crate) fn pins_of_one_only(before: &ShardMap, after: &ShardMap) -> Vec<EncodedKey> {
    let gone = before.pins.keys().filter(|key| !after.pins.contains_key(*key));
    let new = after.pins.keys().filter(|key| !before.pins.contains_key(*key));
    gone.chain(new).cloned().collect()
}

fn stamp_mapping(map: &mut ShardMap, mapping: Option<MappingId>, epoch: Epoch) {
    let placement = match mapping {
        Some(MappingId::Pin(key)) => map.pins.get_mut(&key),
        Some(MappingId::Range(low)) => map.ranges.get_mut(&low).map(|range| &mut range.placement),
        Some(MappingId::Virtual(number)) => {
            map.virtual_shards.as_mut().and_then(|layer| layer.placements.get_mut(number as usize))
        }
        None => None,
    };
    if let Some(placement) = placement {
        placement.since = epoch;
    }
}

fn stamp_all(map: &mut ShardMap, epoch: Epoch) {
    map.since = epoch;
    map.pins.values_mut().for_each(|placement| placement.since = epoch);
    map.ranges.values_mut().for_each(|range| range.placement.since = epoch);
    map.frozen.values_mut().for_each(|frozen| frozen.since = epoch);
    for placement in map.virtual_shards.iter_mut().flat_map(|layer| &mut layer.placements) {
        placement.since = epoch;
    }
}
