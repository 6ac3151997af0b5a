//! Which copies are written, and in which order, so that at no time two shards let writes of one key pass.
//!
//! A shard that lost keys is closed before any shard that got keys of the same map is opened: its copy is
//! written without what it lost, for the newest epoch. It is written even if it never had in its copy what it
//! lost, because another publisher that is late may be about to put it there; with a newer epoch in the copy
//! that one is refused. A shard that can't be reached and may have lost keys that its copy still has keeps
//! the gainers of that map closed (*held*) until it is reached.
//!
//! Pure: what is read goes in, what is to be written comes out.

use super::losses::Losses;
use crate::local::copy::LocalCopy;
use crate::local::local_store::{Revision, StoredCopy};
use shard_map::{Catalog, Epoch, Name};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a shard's copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardCopy {
    /// What is there.
    Read(Option<StoredCopy>),
    /// The shard can't be reached, and why.
    Unreachable(String),
}

/// A copy that does not belong to the map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyMismatch {
    /// It is one of another catalog.
    #[error(
        "shard `{shard}` of catalog `{ours}` is at {location}, and there is shard `{there}` of catalog `{theirs}`; \
         give it another location, or release that one first"
    )]
    OtherCatalog {
        /// The shard's name here.
        shard: Name,
        /// This catalog.
        ours: Name,
        /// Where the shard is.
        location: String,
        /// The shard's name there.
        there: Name,
        /// The other catalog.
        theirs: Name,
    },
    /// It is another shard of this catalog.
    #[error(
        "shard `{shard}` is at {location}, and there is shard `{there}` of the same catalog `{catalog}`; each shard has \
         a location of its own"
    )]
    OtherShard {
        /// The shard's name here.
        shard: Name,
        /// Where it is.
        location: String,
        /// The shard's name there.
        there: Name,
        /// The catalog.
        catalog: Name,
    },
    /// It is of a later epoch than the map.
    #[error(
        "the map is old: catalog `{catalog}` is at epoch {epoch}, and shard `{shard}` has a copy of epoch {copy}; \
         recover the map from the shards"
    )]
    OldCatalog {
        /// The catalog.
        catalog: Name,
        /// Its epoch.
        epoch: Epoch,
        /// The shard.
        shard: Name,
        /// The epoch of its copy.
        copy: Epoch,
    },
}

/// A copy to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyWrite {
    pub(crate) shard: Name,
    pub(crate) copy: LocalCopy,
}

/// A shard that gets keys later, because another that may still have them can't be reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The shard that is to get keys.
    pub shard: Name,
    /// Of which map.
    pub map: Name,
    /// The shards that may still have them.
    pub waits_for: Vec<Name>,
}

/// What is to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    /// First all of these, in any order.
    pub(crate) close: Vec<CopyWrite>,
    /// Then these, in this order.
    pub(crate) open: Vec<CopyWrite>,
    pub(crate) held: Vec<Held>,
    /// The versions that were read.
    pub(crate) revisions: BTreeMap<Name, Revision>,
}

/// What all shards are to be written, over what is known: `floors` are epochs that copies are known to have
/// reached, for shards that can't be reached.
pub(crate) fn choose_writes(
    catalog: &Catalog,
    copies: &BTreeMap<Name, ShardCopy>,
    floors: &BTreeMap<Name, Epoch>,
    losses: &Losses,
) -> Result<Writes, CopyMismatch> {
    let mut writes = Writes::default();
    let mut targets = Vec::new();
    for shard in catalog.shards() {
        let Some(ShardCopy::Read(stored)) = copies.get(&shard.name) else { continue };
        let Some(target) = LocalCopy::of(catalog, shard.name.as_str()) else { continue };
        let current = stored.as_ref().map(|stored| &stored.copy);
        if let Some(copy) = current {
            check(catalog, &target, copy)?;
        }
        if let Some(stored) = stored {
            writes.revisions.insert(shard.name.clone(), stored.revision.clone());
        }
        if is_to_be_closed(&target, current, losses) {
            writes.close.push(CopyWrite { shard: shard.name.clone(), copy: closed(&target, current) });
        }
        targets.push((target, current));
    }
    let unreachable = unreachable_losers(catalog, copies, floors, losses);
    for (target, current) in targets {
        let name = target.shard.name.clone();
        let (opened, mut held) = opened(target, current, &unreachable);
        writes.held.append(&mut held);
        let closed = writes.close.iter().find(|write| write.shard == name).map(|write| &write.copy);
        let there = closed.or(current);
        if there.is_none_or(|there| !there.is_same(&opened)) {
            writes.open.push(CopyWrite { shard: name, copy: opened });
        }
    }
    close_and_open_at_once(&mut writes, &unreachable);
    Ok(writes)
}

/// If only one shard lost anything, one write closes and opens it; it comes first.
fn close_and_open_at_once(writes: &mut Writes, unreachable: &BTreeMap<Name, Vec<Name>>) {
    let [only] = writes.close.as_slice() else { return };
    let Some(at) = writes.open.iter().position(|write| write.shard == only.shard) else { return };
    if unreachable.is_empty() {
        writes.open[..=at].rotate_right(1);
        writes.close.clear();
    }
}

fn check(catalog: &Catalog, target: &LocalCopy, copy: &LocalCopy) -> Result<(), CopyMismatch> {
    let (shard, location) = (target.shard.name.clone(), target.shard.location.clone());
    let there = copy.shard.name.clone();
    if copy.catalog_id != target.catalog_id {
        let (ours, theirs) = (target.catalog.clone(), copy.catalog.clone());
        return Err(CopyMismatch::OtherCatalog { shard, ours, location, there, theirs });
    }
    if there != shard {
        return Err(CopyMismatch::OtherShard { shard, location, there, catalog: target.catalog.clone() });
    }
    if copy.epoch > catalog.epoch() {
        let (catalog, epoch) = (catalog.name().clone(), catalog.epoch());
        return Err(CopyMismatch::OldCatalog { catalog, epoch, shard, copy: copy.epoch });
    }
    Ok(())
}

/// Whether keys may be open there that are elsewhere, now or once a late publisher has written.
fn is_to_be_closed(target: &LocalCopy, current: Option<&LocalCopy>, losses: &Losses) -> bool {
    let epoch = current.map_or(Epoch(0), |copy| copy.epoch);
    let has_others = current.is_some_and(|copy| {
        copy.mappings().any(|(name, map, id, mapping)| !target.has_same(name, map, id, mapping))
    });
    has_others || losses.may_have_lost_any(&target.shard.name, epoch)
}

/// What is open there and stays so, for the newest epoch.
fn closed(target: &LocalCopy, current: Option<&LocalCopy>) -> LocalCopy {
    match current {
        None => target.clone().without_mappings(),
        Some(current) => {
            target.clone().filtered(|name, map, id, mapping| current.has_same(name, map, id, mapping))
        }
    }
}

/// What is to be open there, without what is held.
fn opened(
    target: LocalCopy,
    current: Option<&LocalCopy>,
    unreachable: &BTreeMap<Name, Vec<Name>>,
) -> (LocalCopy, Vec<Held>) {
    let shard = target.shard.name.clone();
    let mut held_maps = BTreeSet::new();
    for (name, map, id, mapping) in target.mappings() {
        let is_there = current.is_some_and(|current| current.has_same(name, map, id, mapping));
        let waits = unreachable.get(name).is_some_and(|losers| losers.iter().any(|loser| *loser != shard));
        if !is_there && waits {
            held_maps.insert(name.clone());
        }
    }
    let opened = target.filtered(|name, map, id, mapping| {
        !held_maps.contains(name) || current.is_some_and(|current| current.has_same(name, map, id, mapping))
    });
    let held = held_maps.into_iter().map(|map| {
        let waits_for = unreachable.get(&map).cloned().unwrap_or_default();
        Held { shard: shard.clone(), map, waits_for }
    });
    (opened, held.collect())
}

/// For each map the shards that can't be reached and may still have open what they lost.
fn unreachable_losers(
    catalog: &Catalog,
    copies: &BTreeMap<Name, ShardCopy>,
    floors: &BTreeMap<Name, Epoch>,
    losses: &Losses,
) -> BTreeMap<Name, Vec<Name>> {
    let mut losers: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
    let is_unreachable = |shard: &&Name| !matches!(copies.get(*shard), Some(ShardCopy::Read(_)));
    for shard in catalog.shards().map(|shard| &shard.name).filter(is_unreachable) {
        let floor = floors.get(shard).copied().unwrap_or_default();
        for map in catalog.maps().filter(|map| losses.may_have_lost(shard, map.name(), floor)) {
            losers.entry(map.name().clone()).or_default().push(shard.clone());
        }
    }
    losers
}

#[cfg(test)]
mod tests;
