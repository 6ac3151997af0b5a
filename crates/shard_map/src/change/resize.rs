//! Another number of virtual shards, without moving a key.
//!
//! With `k * n` virtual shards those of `v` are `k * v` to `k * v + k - 1` (see `hash.rs`): each takes the
//! placement of the one that it was part of, and parts become one if they are in one place.

use super::error::ChangeError;
use crate::catalog::map::ShardMap;
use crate::catalog::map_error::MapError;
use crate::catalog::placement::Placement;
use crate::key::hash::VIRTUAL_SHARDS_MAX;
use crate::name::Name;

pub(super) fn resize(map: &mut ShardMap, to: u32) -> Result<(), ChangeError> {
    if !(1..=VIRTUAL_SHARDS_MAX).contains(&to) {
        return Err(MapError::VirtualShardCount { map: map.name.clone(), count: to }.into());
    }
    let Some(layer) = &mut map.virtual_shards else { return Err(ChangeError::NoHash(map.name.clone())) };
    let from = layer.hashed.count;
    layer.placements = if to.is_multiple_of(from) {
        let times = (to / from) as usize;
        layer.placements.iter().flat_map(|placement| std::iter::repeat_n(placement, times)).cloned().collect()
    } else if from.is_multiple_of(to) {
        joined(&map.name, &layer.placements, from / to)?
    } else {
        return Err(ChangeError::NoMultiple { map: map.name.clone(), from, to });
    };
    layer.hashed.count = to;
    Ok(())
}

/// Each `times` placements as one, if they are the same.
fn joined(map: &Name, placements: &[Placement], times: u32) -> Result<Vec<Placement>, ChangeError> {
    let mut joined = Vec::new();
    for (first, parts) in (0_u32..).step_by(times as usize).zip(placements.chunks(times as usize)) {
        let place = &parts[0];
        let other = (first..).zip(parts).find(|(_, part)| !part.is_same_place(place));
        if let Some((second, part)) = other {
            return Err(ChangeError::Apart {
                map: map.clone(),
                first,
                first_shard: place.shard.clone(),
                first_state: place.state,
                second,
                second_shard: part.shard.clone(),
                second_state: part.state,
            });
        }
        joined.push(place.clone());
    }
    Ok(joined)
}
