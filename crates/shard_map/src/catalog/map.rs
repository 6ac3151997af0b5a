//! A shard map: the mappings of one kind of key, in three layers.
//!
//! ```text
//! pins             single keys, each with a placement
//!   over ranges    [low, high), in order, none overlapping
//!     over hash    a fixed number of virtual shards, each with a placement
//! ```
//!
//! The first layer that has a mapping for a key decides. A map may have any of the layers.
//!
//! What always holds: a key has at most one mapping. If the map has a hash it has exactly one; without hash,
//! ranges (if there are any) hold all keys from the first to the last; a map of pins alone has mappings for
//! these keys only.

use super::frozen::Frozen;
use super::map_error::MapError;
use super::mapping_id::MappingId;
use super::placement::{Epoch, Placement};
use crate::key::encoded::{Bound, EncodedKey};
use crate::key::error::KeyError;
use crate::key::hash::KeyHash;
use crate::key::key_type::KeyType;
use crate::key::value::{KeyValue, key_text};
use crate::limits::{PINS_MAX, RANGES_MAX};
use crate::name::Name;
use std::collections::BTreeMap;

/// A shard map. [`crate::MapBuilder`] makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap {
    pub(crate) name: Name,
    pub(crate) key: KeyType,
    pub(crate) pins: BTreeMap<EncodedKey, Placement>,
    /// By their low bounds.
    pub(crate) ranges: BTreeMap<Bound, Range>,
    pub(crate) virtual_shards: Option<VirtualShards>,
    pub(crate) frozen: BTreeMap<MappingId, Frozen>,
    pub(crate) since: Epoch,
}

/// A range, whose low bound is its key in [`ShardMap::ranges`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The bound before the keys after it; none: it goes to the last key.
    pub high: Option<Bound>,
    /// Where its keys are.
    pub placement: Placement,
}

/// The hash of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualShards {
    pub(crate) hashed: Hashed,
    /// One for each virtual shard.
    pub(crate) placements: Vec<Placement>,
}

/// How keys are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashed {
    /// By what.
    pub hash: KeyHash,
    /// How many leading columns of the key; those with the same values stay together.
    pub columns: usize,
    /// Into how many virtual shards.
    pub count: u32,
}

impl VirtualShards {
    /// How keys are hashed.
    pub fn hashed(&self) -> Hashed {
        self.hashed
    }

    /// Where each virtual shard is.
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// Virtual shards in a row that are the same in all but their number: first, last, placement.
    pub fn runs(&self) -> Vec<(u32, u32, &Placement)> {
        let mut runs: Vec<(u32, u32, &Placement)> = Vec::new();
        for (number, placement) in (0_u32..).zip(&self.placements) {
            match runs.last_mut() {
                Some((_, last, before)) if *before == placement => *last = number,
                _ => runs.push((number, number, placement)),
            }
        }
        runs
    }
}

impl ShardMap {
    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The type of its keys.
    pub fn key_type(&self) -> &KeyType {
        &self.key
    }

    /// Keys with a placement of their own, in their order.
    pub fn pins(&self) -> impl ExactSizeIterator<Item = (&EncodedKey, &Placement)> {
        self.pins.iter()
    }

    /// Ranges by their low bounds, in order.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = (&Bound, &Range)> {
        self.ranges.iter()
    }

    /// The hash below pins and ranges.
    pub fn virtual_shards(&self) -> Option<&VirtualShards> {
        self.virtual_shards.as_ref()
    }

    /// Mappings that are frozen, in their order.
    pub fn frozen(&self) -> impl ExactSizeIterator<Item = (&MappingId, &Frozen)> {
        self.frozen.iter()
    }

    /// What froze a mapping; none: nothing did.
    pub fn frozen_by(&self, mapping: &MappingId) -> Option<&Frozen> {
        self.frozen.get(mapping)
    }

    /// The same map with these mappings frozen, and no others: what a recovery knows of those that were.
    ///
    /// # Errors
    /// One of them is no mapping of the map, or its text is none.
    pub fn with_frozen(
        mut self,
        frozen: impl IntoIterator<Item = (MappingId, Frozen)>,
    ) -> Result<Self, MapError> {
        self.frozen = frozen.into_iter().collect();
        self.check()?;
        Ok(self)
    }

    /// The epoch since which the map is as it is.
    pub fn since(&self) -> Epoch {
        self.since
    }

    /// The placements of all mappings.
    pub fn placements(&self) -> impl Iterator<Item = &Placement> {
        let ranges = self.ranges.values().map(|range| &range.placement);
        let placed = self.virtual_shards.iter().flat_map(|layer| &layer.placements);
        self.pins.values().chain(ranges).chain(placed)
    }

    /// A key in words.
    pub fn key_text(&self, key: &EncodedKey) -> String {
        self.key.decode(key.as_bytes()).map_or_else(|_| format!("{key:?}"), |values| key_text(&values))
    }

    /// A range in words: `[17, 100)`.
    pub fn range_text(&self, low: &Bound, high: Option<&Bound>) -> String {
        range_text(&self.key, low, high)
    }

    /// Where and under which name a bound is in ranges: what is in the way of a split, say.
    pub(crate) fn range_on_text(&self, low: &Bound, range: &Range) -> String {
        format!("{} on `{}`", self.range_text(low, range.high.as_ref()), range.placement.shard)
    }

    pub(crate) fn key_error(&self, error: KeyError) -> MapError {
        MapError::Key { map: self.name.clone(), error }
    }

    /// Whether its ranges leave no gap that nothing holds, none overlap, and it is not too large.
    pub(crate) fn check(&self) -> Result<(), MapError> {
        if self.pins.len() > PINS_MAX || self.ranges.len() > RANGES_MAX {
            return Err(MapError::TooLarge(self.name.clone()));
        }
        let is_right = |(mapping, frozen): &(&MappingId, &Frozen)| {
            self.placement(mapping).is_some() && frozen.is_right()
        };
        if let Some((mapping, _)) = self.frozen.iter().find(|found| !is_right(found)) {
            let (map, mapping) = (self.name.clone(), mapping.to_string());
            return Err(MapError::FrozenNothing { map, mapping });
        }
        let mut before: Option<(&Bound, &Range)> = None;
        for (low, range) in &self.ranges {
            if range.high.as_ref().is_some_and(|high| high <= low) {
                let range = self.range_on_text(low, range);
                return Err(MapError::EmptyRange { map: self.name.clone(), range });
            }
            let end = before.map_or_else(|| Some(Bound::first()), |(_, before)| before.high.clone());
            match (before, end) {
                (Some((before_low, before)), end) if end.as_ref().is_none_or(|end| end > low) => {
                    return Err(MapError::Overlap {
                        map: self.name.clone(),
                        first: self.range_on_text(before_low, before),
                        second: self.range_on_text(low, range),
                    });
                }
                (_, Some(end)) if end < *low && self.virtual_shards.is_none() => {
                    return Err(self.missing(before, &end, Some((low, range))));
                }
                _ => before = Some((low, range)),
            }
        }
        match before {
            Some((_, Range { high: Some(end), .. })) if self.virtual_shards.is_none() => {
                Err(self.missing(before, end, None))
            }
            _ => Ok(()),
        }
    }

    fn missing(
        &self,
        before: Option<(&Bound, &Range)>,
        from: &Bound,
        after: Option<(&Bound, &Range)>,
    ) -> MapError {
        let shown = |range: Option<(&Bound, &Range)>, end: &str| {
            range.map_or_else(|| end.to_owned(), |(low, range)| self.range_on_text(low, range))
        };
        MapError::MissingRange {
            map: self.name.clone(),
            keys: self.range_text(from, after.map(|(low, _)| low)),
            before: shown(before, "the first key"),
            after: shown(after, "the last key"),
        }
    }
}

/// A range in words: `[17, 100)`; `[first, …` and `…, last]` where it has no bound.
pub(crate) fn range_text(key: &KeyType, low: &Bound, high: Option<&Bound>) -> String {
    let shown = |bound: &Bound| match key.decode_bound(bound.as_bytes()) {
        Ok(values) if values.is_empty() => "first".to_owned(),
        Ok(values) => key_text(&values),
        Err(_) => format!("{bound:?}"),
    };
    match high {
        Some(high) => format!("[{}, {})", shown(low), shown(high)),
        None => format!("[{}, last]", shown(low)),
    }
}

/// Values as one of a map's keys is shown.
pub(crate) fn values_text(values: &[KeyValue]) -> String {
    if values.is_empty() { "first".to_owned() } else { key_text(values) }
}
