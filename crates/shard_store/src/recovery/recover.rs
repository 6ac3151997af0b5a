//! A map out of shards' copies: if the map is lost, if an old one was restored, or to take a detached shard
//! in.
//!
//! For each shard either its copy is believed or the map is (both choices of a difference). What always
//! holds: the recovered map is right as a whole, and its epoch is higher than any that the lost one can have
//! had; only pins that a copy vouches for keep their `since`, so that no client of the lost map passes a
//! fence that it should not; a mapping that was frozen in the old map is frozen, if it has the same keys. The
//! first publish closes all shards before it opens any (`losses.rs`).

use super::claims::{Claim, Claims};
use super::recovered::{RecoverError, Recovery};
use crate::local::copy::{LocalCopy, LocalMap};
use shard_map::{Bound, Catalog, Epoch, MappingId, Name, Range, Shard, ShardMap};
use std::collections::{BTreeMap, BTreeSet};

/// A lost map can have gone on for fewer changes than that after the last one that a copy or a backup knows.
pub const LOST_EPOCHS_MAX: u64 = 1 << 20;

/// Puts a map together. `old` is what is left of the map, if anything; `believed` are the shards whose copies
/// are right where they differ from it. Copies of other shards only say how high epochs have been.
pub fn recover(
    old: Option<&Catalog>,
    copies: &BTreeMap<Name, LocalCopy>,
    believed: &BTreeSet<Name>,
) -> Result<(Catalog, Recovery), RecoverError> {
    let (name, id) = identity(old, copies)?;
    let epoch = next_epoch(old, copies);
    let believed: BTreeMap<&Name, &LocalCopy> =
        copies.iter().filter(|(name, _)| believed.contains(*name)).collect();
    let mut claims: BTreeMap<Name, Claims> = BTreeMap::new();
    for (shard, copy) in &believed {
        for (map, part) in &copy.maps {
            let source = format!("shard `{shard}`");
            let made = || Claims::new(map.clone(), part.key.clone(), part.hash, source.clone());
            let claims = claims.entry(map.clone()).or_insert_with(made);
            check_form(claims, part, &source)?;
            claims.add_copy(shard, part);
        }
    }
    for map in old.into_iter().flat_map(Catalog::maps) {
        let hash = map.virtual_shards().map(|layer| layer.hashed());
        let made = || Claims::new(map.name().clone(), map.key_type().clone(), hash, "the map".to_owned());
        let claims = claims.entry(map.name().clone()).or_insert_with(made);
        // A former form of the map, whose mappings mean something else, has nothing to say.
        if claims.key == *map.key_type() && claims.hash == hash {
            add_old(claims, map);
        }
    }
    let mut recovery = Recovery { is_map_lost: old.is_none(), ..Recovery::default() };
    let mut maps = Vec::new();
    for claims in claims.into_values() {
        let map = claims.settle(epoch, &mut recovery)?;
        let former = old.and_then(|old| old.map(map.name().as_str()));
        maps.push(freeze(map, former.map(|former| &**former), &mut recovery)?);
    }
    let shards = shards(old, &believed);
    Ok((Catalog::from_parts(name, id, epoch, shards, maps)?, recovery))
}

/// Freezes what was frozen in the map's former form. Whoever did, a move or a repair, names rows by the
/// mapping alone: with other keys it would take others' rows for its own, and finds it thawed instead.
fn freeze(
    map: ShardMap,
    former: Option<&ShardMap>,
    recovery: &mut Recovery,
) -> Result<ShardMap, RecoverError> {
    let Some(former) = former else { return Ok(map) };
    let mut frozen = Vec::new();
    for (mapping, there) in former.frozen() {
        let (name, text) = (map.name().clone(), mapping.to_string());
        match has_same_keys(former, &map, mapping) {
            true => {
                recovery.frozen.push((name, text, there.by.clone()));
                frozen.push((mapping.clone(), there.clone()));
            }
            false => recovery.thawed.push((name, text, there.by.clone())),
        }
    }
    map.with_frozen(frozen).map_err(|error| RecoverError::Map { error })
}

/// Whether a mapping of two forms of a map has the same keys, as far as that is sure: what lies above it must
/// be the same.
fn has_same_keys(one: &ShardMap, other: &ShardMap, mapping: &MappingId) -> bool {
    let pins = |map: &ShardMap| map.pins().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    let ranges = |map: &ShardMap| {
        let bounds = |(low, range): (&Bound, &Range)| (low.clone(), range.high.clone());
        map.ranges().map(bounds).collect::<BTreeMap<Bound, Option<Bound>>>()
    };
    let hashed = |map: &ShardMap| map.virtual_shards().map(|layer| layer.hashed());
    let (are_pins_same, is_there) = (pins(one) == pins(other), other.placement(mapping).is_some());
    one.key_type() == other.key_type()
        && is_there
        && match mapping {
            MappingId::Pin(_) => true,
            MappingId::Range(low) => are_pins_same && ranges(one).get(low) == ranges(other).get(low),
            MappingId::Virtual(_) => {
                are_pins_same && ranges(one) == ranges(other) && hashed(one) == hashed(other)
            }
        }
}

fn identity(
    old: Option<&Catalog>,
    copies: &BTreeMap<Name, LocalCopy>,
) -> Result<(Name, [u8; 16]), RecoverError> {
    let of_map = old.map(|old| ("the map".to_owned(), old.name().clone(), old.id()));
    let of_copy = || {
        copies.iter().next().map(|(shard, copy)| (shard.to_string(), copy.catalog.clone(), copy.catalog_id))
    };
    let (first, name, id) = of_map.or_else(of_copy).ok_or(RecoverError::Nothing)?;
    match copies.iter().find(|(_, copy)| copy.catalog_id != id) {
        None => Ok((name, id)),
        Some((second, copy)) => {
            let (second, second_catalog) = (second.clone(), copy.catalog.clone());
            Err(RecoverError::TwoCatalogs { first, first_catalog: name, second, second_catalog })
        }
    }
}

/// One that the lost map can't have reached. That a map is behind no copy does not say that it is the newest:
/// clients may know epochs that were lost before any copy reached them.
fn next_epoch(old: Option<&Catalog>, copies: &BTreeMap<Name, LocalCopy>) -> Epoch {
    let of_copies = copies.values().map(|copy| copy.epoch).max().unwrap_or_default();
    let highest = old.map_or(of_copies, |old| old.epoch().max(of_copies));
    Epoch(highest.0 + LOST_EPOCHS_MAX)
}

fn check_form(claims: &Claims, part: &LocalMap, source: &str) -> Result<(), RecoverError> {
    if claims.key == part.key && claims.hash == part.hash {
        return Ok(());
    }
    let (map, first, second) = (claims.name.clone(), claims.source.clone(), source.to_owned());
    Err(RecoverError::TwoForms { map, first, second })
}

fn add_old(claims: &mut Claims, map: &ShardMap) {
    let ranges: BTreeMap<&Bound, &Range> = map.ranges().collect();
    for (id, placement) in map.mappings() {
        let high = match &id {
            MappingId::Range(low) => ranges.get(low).and_then(|range| range.high.clone()),
            MappingId::Pin(_) | MappingId::Virtual(_) => None,
        };
        let (shard, state, since) = (placement.shard.clone(), placement.state, placement.since);
        claims.add(id, Claim { shard, high, state, since, is_of_copy: false });
    }
}

/// What believed copies say of their shards, and the map of the others.
fn shards(old: Option<&Catalog>, believed: &BTreeMap<&Name, &LocalCopy>) -> Vec<Shard> {
    let of_map = old.into_iter().flat_map(Catalog::shards);
    let mut shards: BTreeMap<Name, Shard> = of_map.map(|shard| (shard.name.clone(), shard.clone())).collect();
    shards.extend(believed.iter().map(|(name, copy)| (Name::clone(name), copy.shard.clone())));
    shards.into_values().collect()
}

#[cfg(test)]
mod tests;
