//! Makes a later catalog of an earlier one and what differs: how a log of changes is read.
//!
//! What always holds: a difference that does not fit to the catalog, or makes one that is not right, is an
//! error; nothing of it is taken then.

use super::difference::{Diff, header, range_body};
use super::edit::{Bytes, FrozenEdit, MapEdit, MapHeader, PinEdit, RangeBody, RangeEdit, VirtualEdit};
use crate::catalog::catalog::{Catalog, CatalogError};
use crate::catalog::frozen::Frozen;
use crate::catalog::map::{Range, ShardMap, VirtualShards};
use crate::catalog::map_error::MapError;
use crate::catalog::mapping_id::MappingId;
use crate::catalog::placement::{Epoch, Placement};
use crate::key::error::KeyError;
use crate::key::hash::VIRTUAL_SHARDS_MAX;
use crate::name::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A difference that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It begins at another epoch.
    #[error("catalog `{catalog}` is at epoch {at}, and the change is from epoch {from} to {to}")]
    Epoch {
        /// The catalog.
        catalog: Name,
        /// Its epoch.
        at: Epoch,
        /// Where the change begins.
        from: Epoch,
        /// Where it ends.
        to: Epoch,
    },
    /// Something is not as the difference says that it was.
    #[error("{what} is {found}, and the change says {expected}")]
    Differs {
        /// What.
        what: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Its keys or bounds are none of the map.
    #[error("map `{map}`: {error}")]
    Key {
        /// The map.
        map: Name,
        /// What is wrong.
        error: KeyError,
    },
    /// It makes a catalog that is not right.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// Whether what was there must be the same as the difference says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// In all.
    Exact,
    /// In all but the epochs.
    Content,
    /// As [`Fit::Content`]; where the difference has nothing but a new epoch, which came with another
    /// mapping's change, anything may be there, and stays.
    ContentThatDiffers,
}

impl Catalog {
    /// The catalog after a change.
    pub fn patch(&self, diff: &Diff) -> Result<Catalog, PatchError> {
        self.patch_all(std::iter::once(diff))
    }

    /// The catalog after these changes, which are in order. It is checked once, at the end.
    pub fn patch_all<'a>(&self, diffs: impl IntoIterator<Item = &'a Diff>) -> Result<Catalog, PatchError> {
        let mut catalog = self.clone();
        for diff in diffs {
            if diff.from != catalog.epoch || diff.to <= diff.from {
                return Err(PatchError::Epoch {
                    catalog: catalog.name,
                    at: catalog.epoch,
                    from: diff.from,
                    to: diff.to,
                });
            }
            edit(&mut catalog, diff, Fit::Exact)?;
            catalog.epoch = diff.to;
        }
        catalog.check()?;
        Ok(catalog)
    }
}

/// Makes all edits of a difference.
pub(super) fn edit(catalog: &mut Catalog, diff: &Diff, fit: Fit) -> Result<(), PatchError> {
    for change in &diff.shards {
        let there = catalog.shards.get(&change.name);
        let is_same = match (there, &change.old) {
            (Some(there), Some(old)) if fit != Fit::Exact => there.is_same(old),
            (there, old) => there == old.as_ref(),
        };
        if !is_same {
            let shown = |shard: Option<&crate::catalog::shard::Shard>| {
                shard.map_or("not there".to_owned(), |shard| {
                    format!("at {} ({})", shard.location, shard.state)
                })
            };
            let what = format!("shard `{}`", change.name);
            let (found, expected) = (shown(there), shown(change.old.as_ref()));
            return Err(PatchError::Differs { what, found, expected });
        }
        match &change.new {
            Some(shard) => catalog.shards.insert(change.name.clone(), shard.clone()),
            None => catalog.shards.remove(&change.name),
        };
    }
    for change in &diff.maps {
        let there = catalog.maps.get(&change.name).map(Arc::as_ref);
        match edited_map(there, change, fit)? {
            Some(map) => catalog.maps.insert(change.name.clone(), Arc::new(map)),
            None => catalog.maps.remove(&change.name),
        };
    }
    Ok(())
}

/// The map afterwards, or none.
fn edited_map(there: Option<&ShardMap>, change: &MapEdit, fit: Fit) -> Result<Option<ShardMap>, PatchError> {
    let name = &change.name;
    check_header(there.map(header).as_ref(), change, fit)?;
    // Where keys are encoded or hashed in another way, every mapping means something else.
    let form = |header: &Option<MapHeader>| header.as_ref().map(|header| (header.key.clone(), header.hash));
    let fit = match fit {
        Fit::ContentThatDiffers if form(&change.old) != form(&change.new) => Fit::Content,
        fit => fit,
    };
    let mut layers = Layers::of(there);
    for edit in &change.pins {
        let PinEdit { key, old, new } = edit;
        put(name, &mut layers.pins, ("pin", key), (old, new), fit, Placement::is_same_place)?;
    }
    for edit in &change.ranges {
        let RangeEdit { low, old, new } = edit;
        let is_same = |one: &RangeBody, other: &RangeBody| {
            one.high == other.high && one.placement.is_same_place(&other.placement)
        };
        put(name, &mut layers.ranges, ("range", low), (old, new), fit, is_same)?;
    }
    for edit in &change.virtual_shards {
        let VirtualEdit { first, last, old, new } = edit;
        for number in *first..=(*last).min(VIRTUAL_SHARDS_MAX) {
            let at = ("virtual shard", &number);
            put(name, &mut layers.placements, at, (old, new), fit, Placement::is_same_place)?;
        }
    }
    for FrozenEdit { mapping, old, new } in &change.frozen {
        let is_same = |one: &Frozen, other: &Frozen| one.by == other.by;
        put(name, &mut layers.frozen, ("freeze of", mapping), (old, new), fit, is_same)?;
    }
    match &change.new {
        Some(header) => layers.map(name, header).map(Some),
        None if layers.is_empty() => Ok(None),
        None => Err(differs(name, "its mappings", "more than those that are removed", "none")),
    }
}

fn check_header(there: Option<&MapHeader>, change: &MapEdit, fit: Fit) -> Result<(), PatchError> {
    let is_same = match (there, &change.old) {
        (Some(there), Some(old)) if fit != Fit::Exact => there.key == old.key && there.hash == old.hash,
        (there, old) => there == old.as_ref(),
    };
    let shown = |header: Option<&MapHeader>| match header {
        None => "not there".to_owned(),
        Some(header) => {
            let count = header.hash.map_or(0, |hash| hash.count);
            format!("of {} with {count} virtual shards, since epoch {}", header.key, header.since)
        }
    };
    match is_same {
        true => Ok(()),
        false => Err(differs(&change.name, "the map", shown(there), shown(change.old.as_ref()))),
    }
}

/// The mappings of a map by their bytes or numbers.
struct Layers {
    pins: BTreeMap<Bytes, Placement>,
    ranges: BTreeMap<Bytes, RangeBody>,
    placements: BTreeMap<u32, Placement>,
    /// By the mappings' ids as texts.
    frozen: BTreeMap<String, Frozen>,
}

impl Layers {
    fn of(map: Option<&ShardMap>) -> Self {
        let bytes = |bytes: &[u8]| Bytes(bytes.to_vec());
        let pins = map.into_iter().flat_map(|map| &map.pins);
        let ranges = map.into_iter().flat_map(|map| &map.ranges);
        let placements = map.and_then(|map| map.virtual_shards.as_ref()).map(|layer| &layer.placements);
        Layers {
            pins: pins.map(|(key, placement)| (bytes(key.as_bytes()), placement.clone())).collect(),
            ranges: ranges.map(|(low, range)| (bytes(low.as_bytes()), range_body(range))).collect(),
            placements: (0..).zip(placements.into_iter().flatten().cloned()).collect(),
            frozen: map
                .into_iter()
                .flat_map(|map| &map.frozen)
                .map(|(mapping, frozen)| (mapping.to_string(), frozen.clone()))
                .collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.pins.is_empty() && self.ranges.is_empty() && self.placements.is_empty() && self.frozen.is_empty()
    }

    fn map(self, name: &Name, header: &MapHeader) -> Result<ShardMap, PatchError> {
        let key = &header.key;
        let error = |error| PatchError::Key { map: name.clone(), error };
        let mut pins = BTreeMap::new();
        for (bytes, placement) in self.pins {
            pins.insert(key.stored_key(&bytes.0).map_err(error)?, placement);
        }
        let mut ranges = BTreeMap::new();
        for (low, RangeBody { high, placement }) in self.ranges {
            let bound = |bytes: &Bytes| key.stored_bound(&bytes.0).map_err(error);
            let high = high.as_ref().map(bound).transpose()?;
            ranges.insert(bound(&low)?, Range { high, placement });
        }
        let mut frozen = BTreeMap::new();
        for (mapping, by) in self.frozen {
            let nothing = || MapError::FrozenNothing { map: name.clone(), mapping: mapping.clone() };
            let id = MappingId::parse(&mapping, key);
            frozen.insert(id.ok_or_else(|| CatalogError::Map(nothing()))?, by);
        }
        let count = header.hash.map_or(0, |hash| hash.count);
        let are_all = (0..count).eq(self.placements.keys().copied());
        if !are_all {
            let found = format!("{} placements", self.placements.len());
            return Err(differs(name, "its hash", found, format!("{count} virtual shards")));
        }
        let placements = self.placements.into_values().collect();
        let virtual_shards = header.hash.map(|hashed| VirtualShards { hashed, placements });
        let (name, key, since) = (name.clone(), key.clone(), header.since);
        Ok(ShardMap { name, key, pins, ranges, virtual_shards, frozen, since })
    }
}

/// Puts a value in place of another.
fn put<K: Ord + Clone + std::fmt::Debug, V: Clone + PartialEq + std::fmt::Debug>(
    map: &Name,
    values: &mut BTreeMap<K, V>,
    (layer, key): (&str, &K),
    (old, new): (&Option<V>, &Option<V>),
    fit: Fit,
    is_same: impl Fn(&V, &V) -> bool,
) -> Result<(), PatchError> {
    if fit == Fit::ContentThatDiffers
        && let (Some(old), Some(new)) = (old, new)
        && is_same(old, new)
    {
        return Ok(());
    }
    let there = values.get(key);
    let is_as_expected = match (there, old) {
        (Some(there), Some(old)) if fit != Fit::Exact => is_same(there, old),
        (there, old) => there == old.as_ref(),
    };
    if !is_as_expected {
        let shown = |value: Option<&V>| value.map_or("not there".to_owned(), |value| format!("{value:?}"));
        return Err(differs(map, &format!("the {layer} {key:?}"), shown(there), shown(old.as_ref())));
    }
    match new {
        Some(value) => values.insert(key.clone(), value.clone()),
        None => values.remove(key),
    };
    Ok(())
}

fn differs(map: &Name, what: &str, found: impl Into<String>, expected: impl Into<String>) -> PatchError {
    let what = format!("map `{map}`: {what}");
    PatchError::Differs { what, found: found.into(), expected: expected.into() }
}
