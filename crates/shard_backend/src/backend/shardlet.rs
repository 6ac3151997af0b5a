//! Which rows of a table: those of one mapping of a map, or all.
//!
//! What always holds: a shardlet has exactly the keys that its map routes to its mapping; they are all within
//! its bounds, which may hold others, too: a range's bounds hold pinned keys, a virtual shard's hold all.

use shard_map::{Bound, KeyValue, MappingId, ShardMap};
use std::fmt;
use std::sync::Arc;

/// Which rows.
#[derive(Clone, Debug)]
pub struct Shardlet {
    /// Without one: all rows.
    of: Option<(Arc<ShardMap>, MappingId)>,
    low: Vec<KeyValue>,
    high: Option<Vec<KeyValue>>,
}

impl Shardlet {
    /// All rows: of a reference table, or of a sharded one that is only read.
    pub fn all() -> Self {
        Shardlet { of: None, low: Vec::new(), high: None }
    }

    /// The rows of a mapping; none if the map has no such mapping.
    pub fn new(map: Arc<ShardMap>, mapping: MappingId) -> Option<Self> {
        map.placement(&mapping)?;
        let key_type = map.key_type();
        let values = |bound: &Bound| key_type.decode_bound(bound.as_bytes()).ok();
        let (low, high) = match &mapping {
            MappingId::Pin(key) => {
                let low = key_type.decode(key.as_bytes()).ok()?;
                let high = key_type.bound_after(&low).ok()?;
                let high = high.as_ref().map(values);
                (low, high)
            }
            MappingId::Range(low) => {
                let (_, range) = map.ranges().find(|(there, _)| *there == low)?;
                (values(low)?, range.high.as_ref().map(values))
            }
            MappingId::Virtual(_) => (Vec::new(), None),
        };
        let high = match high {
            Some(high) => Some(high?),
            None => None,
        };
        Some(Shardlet { of: Some((map, mapping)), low, high })
    }

    /// A mapping that its map may have no more: for the end of its claims.
    pub fn without_bounds(map: Arc<ShardMap>, mapping: MappingId) -> Self {
        Shardlet { of: Some((map, mapping)), low: Vec::new(), high: None }
    }

    /// Its map and mapping; none of [`Shardlet::all`].
    pub fn mapping(&self) -> Option<(&ShardMap, &MappingId)> {
        self.of.as_ref().map(|(map, mapping)| (map.as_ref(), mapping))
    }

    /// First columns of keys that its first key is at or after; empty: there is no such bound.
    pub fn low(&self) -> &[KeyValue] {
        &self.low
    }

    /// First columns of keys that all its keys are before, whatever follows them.
    pub fn high(&self) -> Option<&[KeyValue]> {
        self.high.as_deref()
    }

    /// Whether many rows within its bounds may be of other shardlets.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_scattered(&self) -> bool {
        matches!(self.of, Some((_, MappingId::Virtual(_))))
    }

    /// Whether all rows within its bounds are its own: it is all rows, a pin, or a range of a map without
    /// pins.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn is_whole(&self) -> bool {
        match &self.of {
            None | Some((_, MappingId::Pin(_))) => true,
            Some((map, MappingId::Range(_))) => map.pins().len() == 0,
            Some((_, MappingId::Virtual(_))) => false,
        }
    }

    /// Whether it has the rows of a shard key.
    pub fn holds(&self, shard_key: &[KeyValue]) -> bool {
        match &self.of {
            None => true,
            Some((map, mapping)) => map.route(shard_key).is_ok_and(|route| route.mapping == *mapping),
        }
    }
}

/// As messages show it.
impl fmt::Display for Shardlet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            None => out.write_str("all rows"),
            Some((map, mapping)) => write!(out, "map `{}`: {}", map.name(), map.mapping_text(mapping)),
        }
    }
}
