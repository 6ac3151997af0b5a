//! From a key to its mapping.
//!
//! What always holds: a route costs no allocation for a key of at most 32 bytes, and no more than a search in
//! the pins, one in the ranges and one hash.

use super::map::ShardMap;
use super::map_error::MapError;
use super::mapping_id::MappingId;
use super::placement::Placement;
use crate::key::encoded::EncodedKey;
use crate::key::value::{KeyValue, key_text};
use crate::name::Name;
use std::ops;

/// Where a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// The mapping that has the key.
    pub mapping: MappingId,
    /// Where it is, and since when it is as it is.
    pub placement: &'a Placement,
}

/// A key without a route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The values are no key of the map.
    #[error(transparent)]
    Key(MapError),
    /// No mapping has the key, which only a map of pins alone has.
    #[error("map `{map}` has no mapping for the key {key}; pin it, or give the map ranges or a hash")]
    NotMapped {
        /// The map.
        map: Name,
        /// The key.
        key: String,
    },
}

impl ShardMap {
    /// Where the key of these values is.
    pub fn route(&self, key: &[KeyValue]) -> Result<Route<'_>, RouteError> {
        let encoded = self.key.encode(key).map_err(|error| RouteError::Key(self.key_error(error)))?;
        self.route_encoded(&encoded)
            .ok_or_else(|| RouteError::NotMapped { map: self.name.clone(), key: key_text(key) })
    }

    /// Where a key of this map is, if a mapping has it.
    pub fn route_encoded(&self, key: &EncodedKey) -> Option<Route<'_>> {
        match self.pins.get(key) {
            Some(placement) => Some(Route { mapping: MappingId::Pin(key.clone()), placement }),
            None => self.route_below_pins(key),
        }
    }

    /// Where the key were if it had no pin.
    pub(crate) fn route_below_pins(&self, key: &EncodedKey) -> Option<Route<'_>> {
        let upto = (ops::Bound::Unbounded, ops::Bound::Included(key.as_bytes()));
        if let Some((low, range)) = self.ranges.range::<[u8], _>(upto).next_back()
            && range.high.as_ref().is_none_or(|high| key.as_bytes() < high.as_bytes())
        {
            return Some(Route { mapping: MappingId::Range(low.clone()), placement: &range.placement });
        }
        let layer = self.virtual_shards.as_ref()?;
        let hashed = layer.hashed;
        let number = hashed.hash.virtual_shard(&self.key.leading(key, hashed.columns), hashed.count);
        let placement = layer.placements.get(number as usize)?;
        Some(Route { mapping: MappingId::Virtual(number), placement })
    }

    /// The placement of a mapping.
    pub fn placement(&self, mapping: &MappingId) -> Option<&Placement> {
        match mapping {
            MappingId::Pin(key) => self.pins.get(key),
            MappingId::Range(low) => self.ranges.get(low).map(|range| &range.placement),
            MappingId::Virtual(number) => self.virtual_shards.as_ref()?.placements.get(*number as usize),
        }
    }

    /// All mappings with their placements.
    pub fn mappings(&self) -> impl Iterator<Item = (MappingId, &Placement)> {
        let pins = self.pins.iter().map(|(key, placement)| (MappingId::Pin(key.clone()), placement));
        let ranges = self.ranges.iter().map(|(low, range)| (MappingId::Range(low.clone()), &range.placement));
        let placements = self.virtual_shards.iter().flat_map(|layer| &layer.placements);
        let placed =
            (0_u32..).zip(placements).map(|(number, placement)| (MappingId::Virtual(number), placement));
        pins.chain(ranges).chain(placed)
    }

    /// A mapping in words: `the key 17`, `the range [0, 100)`, `virtual shard 5`.
    pub fn mapping_text(&self, mapping: &MappingId) -> String {
        match mapping {
            MappingId::Pin(key) => format!("the key {}", self.key_text(key)),
            MappingId::Range(low) => {
                let high = self.ranges.get(low).and_then(|range| range.high.as_ref());
                format!("the range {}", self.range_text(low, high))
            }
            MappingId::Virtual(number) => format!("virtual shard {number}"),
        }
    }
}
