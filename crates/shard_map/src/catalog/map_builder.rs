//! Makes maps out of mappings: for descriptions that people write, as for documents.
//!
//! ```
//! use shard_map::{KeyKind, KeyType, MapBuilder, Name, Placement};
//!
//! let on = |shard| Ok::<_, shard_map::NameError>(Placement::on(Name::parse(shard)?));
//! let books = KeyType::new([KeyKind::Int32])?;
//! let mut map = MapBuilder::new(Name::parse("books")?, books);
//! map.range(&[], Some(&[500.into()]), on("one")?)?;
//! map.range(&[500.into()], None, on("two")?)?;
//! map.pin(&[7.into()], on("two")?)?;
//! let map = map.build()?;
//! assert_eq!(map.route(&[7.into()])?.placement.shard.as_str(), "two");
//! assert_eq!(map.route(&[8.into()])?.placement.shard.as_str(), "one");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::frozen::Frozen;
use super::map::{Hashed, Range, ShardMap, VirtualShards, values_text};
use super::map_error::MapError;
use super::mapping_id::MappingId;
use super::placement::{Epoch, Placement};
use crate::key::error::KeyError;
use crate::key::hash::VIRTUAL_SHARDS_MAX;
use crate::key::key_type::KeyType;
use crate::key::value::{KeyValue, key_text};
use crate::limits::{PINS_MAX, RANGES_MAX};
use crate::name::Name;
use std::collections::BTreeMap;

/// A map that is being made.
#[derive(Clone, Debug)]
pub struct MapBuilder {
    map: ShardMap,
    hashed: Option<Hashed>,
    placed: BTreeMap<u32, Placement>,
}

impl MapBuilder {
    /// Without mappings.
    pub fn new(name: Name, key: KeyType) -> Self {
        let map = ShardMap {
            name,
            key,
            pins: BTreeMap::new(),
            ranges: BTreeMap::new(),
            virtual_shards: None,
            frozen: BTreeMap::new(),
            since: Epoch(0),
        };
        MapBuilder { map, hashed: None, placed: BTreeMap::new() }
    }

    /// Since when it is as it is; a map that is put into a catalog gets its epoch there.
    pub fn since(&mut self, since: Epoch) -> &mut Self {
        self.map.since = since;
        self
    }

    /// Gives a key a placement of its own.
    pub fn pin(&mut self, key: &[KeyValue], placement: Placement) -> Result<&mut Self, MapError> {
        let encoded = self.map.key.encode(key).map_err(|error| self.key_error(error))?;
        let second = placement.shard.clone();
        if let Some(first) = self.map.pins.insert(encoded, placement) {
            let (map, key) = (self.name(), key_text(key));
            return Err(MapError::PinnedTwice { map, key, first: first.shard, second });
        }
        if self.map.pins.len() > PINS_MAX {
            return Err(MapError::TooLarge(self.name()));
        }
        Ok(self)
    }

    /// Places the keys from `low` on (without values: from the first one) and before `high` (none: to the
    /// last one). Both may have fewer values than the key has columns: then they are before all keys that
    /// begin with these values.
    pub fn range(
        &mut self,
        low: &[KeyValue],
        high: Option<&[KeyValue]>,
        placement: Placement,
    ) -> Result<&mut Self, MapError> {
        let bound = |values| self.map.key.bound(values).map_err(|error| self.key_error(error));
        let (low_bound, high_bound) = (bound(low)?, high.map(bound).transpose()?);
        if high_bound.as_ref().is_some_and(|high| *high <= low_bound) {
            let range = format!("[{}, {})", values_text(low), values_text(high.unwrap_or_default()));
            return Err(MapError::EmptyRange { map: self.name(), range });
        }
        let range = Range { high: high_bound, placement };
        if let Some(first) = self.map.ranges.insert(low_bound.clone(), range) {
            let second = self.map.ranges.get(&low_bound).unwrap_or(&first);
            return Err(MapError::Overlap {
                map: self.name(),
                second: self.map.range_on_text(&low_bound, second),
                first: self.map.range_on_text(&low_bound, &first),
            });
        }
        if self.map.ranges.len() > RANGES_MAX {
            return Err(MapError::TooLarge(self.name()));
        }
        Ok(self)
    }

    /// Puts a hash below pins and ranges.
    pub fn hash(&mut self, hashed: Hashed) -> Result<&mut Self, MapError> {
        if !(1..=VIRTUAL_SHARDS_MAX).contains(&hashed.count) {
            return Err(MapError::VirtualShardCount { map: self.name(), count: hashed.count });
        }
        let count = self.map.key.kinds().len();
        if !(1..=count).contains(&hashed.columns) {
            let (map, key) = (self.name(), self.map.key.to_string());
            return Err(MapError::HashedColumns { map, columns: hashed.columns, key, count });
        }
        self.hashed = Some(hashed);
        Ok(self)
    }

    /// Places the virtual shards `first` to `last`.
    pub fn place(&mut self, first: u32, last: u32, placement: Placement) -> Result<&mut Self, MapError> {
        let count = self.hashed.map_or(0, |hashed| hashed.count);
        if first > last || last >= count {
            return Err(MapError::NoVirtualShard { map: self.name(), first, last, count });
        }
        for number in first..=last {
            if let Some(before) = self.placed.insert(number, placement.clone()) {
                let (map, first, second) = (self.name(), before.shard, placement.shard);
                return Err(MapError::PlacedTwice { map, number, first, second });
            }
        }
        Ok(self)
    }

    /// Places all virtual shards on these shards, in runs whose lengths differ by one at most.
    pub fn spread(&mut self, shards: &[Name]) -> Result<&mut Self, MapError> {
        let count = self.hashed.map_or(0, |hashed| hashed.count);
        let shard_count = u32::try_from(shards.len()).unwrap_or(u32::MAX).max(1);
        let start = |index: u32| (u64::from(count) * u64::from(index) / u64::from(shard_count)) as u32;
        for (index, shard) in (0..shard_count).zip(shards) {
            if start(index) < start(index + 1) {
                self.place(start(index), start(index + 1) - 1, Placement::on(shard.clone()))?;
            }
        }
        Ok(self)
    }

    /// Freezes a mapping that is there once the map is built.
    pub(crate) fn freeze(&mut self, mapping: MappingId, frozen: Frozen) -> &mut Self {
        self.map.frozen.insert(mapping, frozen);
        self
    }

    /// The map, if its mappings fit together.
    pub fn build(self) -> Result<ShardMap, MapError> {
        let MapBuilder { mut map, hashed, placed } = self;
        if let Some(hashed) = hashed {
            let missing = (0..hashed.count).find(|number| !placed.contains_key(number));
            if let Some(number) = missing {
                return Err(MapError::MissingVirtualShard { map: map.name, number, count: hashed.count });
            }
            map.virtual_shards = Some(VirtualShards { hashed, placements: placed.into_values().collect() });
        }
        map.check()?;
        Ok(map)
    }

    fn name(&self) -> Name {
        self.map.name.clone()
    }

    fn key_error(&self, error: KeyError) -> MapError {
        self.map.key_error(error)
    }
}
