//! A shard's copy as JSON.
//!
//! ```json
//! {
//!   "format": 1, "catalog": "app", "id": "c9da6455-213d-42c9-9a79-3e9149a57833", "epoch": 7,
//!   "shard": {"name": "one", "location": "postgres://db1/app", "since": 1},
//!   "maps": [{
//!     "name": "tenants", "key": ["int64"],
//!     "hash": {"name": "sha256", "version": 1, "columns": 1, "count": 64},
//!     "has_ranges": true,
//!     "mappings": [{"mapping": "range-80", "high": "81", "state": "read-only", "since": 5}],
//!     "virtual_shards": [{"first": 0, "last": 31, "since": 2}]
//!   }]
//! }
//! ```
//!
//! Mappings are their ids, bounds the hexadecimal digits of their bytes, so that a copy can be read alone.
//! What always holds: what is written is read as the same copy; a newer format is refused.

use super::copy::{LocalCopy, LocalMap, LocalMapping};
use base::guid::{guid_text, parse_guid};
use serde::{Deserialize, Serialize};
use shard_map::{Bytes, Epoch, Hashed, KeyType, MappingId, Name, Shard, State, VIRTUAL_SHARDS_MAX};
use std::collections::BTreeMap;

/// The newest format, which is written.
pub(crate) const FORMAT: u64 = 1;

/// Why a text is no copy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// A newer version wrote it.
    #[error(
        "the shard's copy of its map has format {0}, and this version reads formats up to {FORMAT}; use a newer version"
    )]
    Newer(u64),
    /// It is not what it should be.
    #[error("the shard's copy of its map is damaged: {0}; write it anew from the map")]
    Damaged(String),
}

#[derive(Serialize, Deserialize)]
struct Format {
    format: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CopyText {
    format: u64,
    catalog: Name,
    id: String,
    epoch: Epoch,
    shard: Shard,
    maps: Vec<MapText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MapText {
    name: Name,
    key: KeyType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<Hashed>,
    has_ranges: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mappings: Vec<MappingText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    virtual_shards: Vec<RunText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MappingText {
    mapping: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    high: Option<Bytes>,
    #[serde(default)]
    state: State,
    since: Epoch,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunText {
    first: u32,
    last: u32,
    #[serde(default)]
    state: State,
    since: Epoch,
}

impl LocalCopy {
    /// The copy on one line.
    pub fn to_json(&self) -> String {
        let text = CopyText {
            format: FORMAT,
            catalog: self.catalog.clone(),
            id: guid_text(&self.catalog_id),
            epoch: self.epoch,
            shard: self.shard.clone(),
            maps: self.maps.iter().map(|(name, map)| map_text(name, map)).collect(),
        };
        // Numbers and texts have a form in JSON.
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// Reads a copy of this or an earlier format.
    pub fn from_json(text: &str) -> Result<Self, CopyError> {
        let damaged = |error: serde_json::Error| CopyError::Damaged(error.to_string());
        let Format { format } = serde_json::from_str(text).map_err(damaged)?;
        if format > FORMAT {
            return Err(CopyError::Newer(format));
        }
        let text: CopyText = serde_json::from_str(text).map_err(damaged)?;
        let catalog_id =
            parse_guid(&text.id).ok_or_else(|| CopyError::Damaged("its id is no guid".to_owned()))?;
        let mut maps = BTreeMap::new();
        for map in text.maps {
            maps.insert(map.name.clone(), read_map(map)?);
        }
        let (catalog, epoch, shard) = (text.catalog, text.epoch, text.shard);
        Ok(LocalCopy { catalog, catalog_id, epoch, shard, maps })
    }
}

fn map_text(name: &Name, map: &LocalMap) -> MapText {
    let (mut mappings, mut virtual_shards) = (Vec::new(), Vec::<RunText>::new());
    for (id, mapping) in &map.mappings {
        let LocalMapping { high, state, since } = mapping.clone();
        match id {
            MappingId::Virtual(number) => match virtual_shards.last_mut() {
                Some(run) if run.last + 1 == *number && run.state == state && run.since == since => {
                    run.last = *number;
                }
                _ => virtual_shards.push(RunText { first: *number, last: *number, state, since }),
            },
            MappingId::Pin(_) | MappingId::Range(_) => {
                let high = high.map(|high| Bytes(high.as_bytes().to_vec()));
                mappings.push(MappingText { mapping: id.to_string(), high, state, since });
            }
        }
    }
    let (name, key) = (name.clone(), map.key.clone());
    MapText { name, key, hash: map.hash, has_ranges: map.has_ranges, mappings, virtual_shards }
}

fn read_map(text: MapText) -> Result<LocalMap, CopyError> {
    let damaged = |what: String| CopyError::Damaged(format!("map `{}`: {what}", text.name));
    let mut mappings = BTreeMap::new();
    for MappingText { mapping, high, state, since } in text.mappings {
        let id = MappingId::parse(&mapping, &text.key);
        let id =
            id.ok_or_else(|| damaged(format!("`{mapping}` is no mapping of keys that are {}", text.key)))?;
        let high = high.map(|high| text.key.stored_bound(&high.0)).transpose();
        let high = high.map_err(|error| damaged(error.to_string()))?;
        mappings.insert(id, LocalMapping { high, state, since });
    }
    for RunText { first, last, state, since } in text.virtual_shards {
        if first > last || last >= text.hash.map_or(0, |hash| hash.count).min(VIRTUAL_SHARDS_MAX) {
            return Err(damaged(format!("there are no virtual shards {first} to {last}")));
        }
        let run = (first..=last).map(MappingId::Virtual);
        mappings.extend(run.map(|id| (id, LocalMapping { high: None, state, since })));
    }
    Ok(LocalMap { key: text.key, hash: text.hash, has_ranges: text.has_ranges, mappings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard_map::{Catalog, Change, KeyHash, KeyKind, MapBuilder, Placement};

    /// Shard `one` of a catalog with a map of ranges and a pin, and one of virtual shards, in two states.
    fn copy() -> LocalCopy {
        let name = |text| Name::parse(text).expect("a name");
        let on = |shard, state| Placement { state, ..Placement::on(name(shard)) };
        let key = || KeyType::new([KeyKind::Int32]).expect("a type");
        let mut ranges = MapBuilder::new(name("ranges"), key());
        ranges.range(&[], Some(&[10.into()]), on("one", State::ReadOnly)).expect("a range");
        ranges.range(&[10.into()], None, on("two", State::Online)).expect("a range");
        ranges.pin(&[12.into()], on("one", State::Offline)).expect("a pin");
        let mut hash = MapBuilder::new(name("hash"), key());
        hash.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 6 }).expect("a hash");
        hash.place(0, 2, on("one", State::Online)).expect("virtual shards");
        hash.place(3, 3, on("one", State::ReadOnly)).expect("a virtual shard");
        hash.place(4, 4, on("two", State::Online)).expect("a virtual shard");
        hash.place(5, 5, on("one", State::ReadOnly)).expect("a virtual shard");
        let mut changes: Vec<Change> =
            ["one", "two"].map(|shard| Change::AddShard(Shard::new(name(shard), shard))).into();
        changes.extend([ranges, hash].map(|map| Change::AddMap(map.build().expect("a map"))));
        let catalog = Catalog::new(name("app"), [7; 16]).apply(&changes).expect("a catalog").catalog;
        LocalCopy::of(&catalog, "one").expect("the shard")
    }

    #[test]
    fn a_copy_is_read_as_it_was_written() {
        let text = copy().to_json();
        assert_eq!(LocalCopy::from_json(&text), Ok(copy()), "{text}");
        // Virtual shards in a row are one entry, unless their states differ.
        assert_eq!(text.matches("\"first\"").count(), 3, "{text}");
        assert!(text.contains("{\"mapping\":\"range-\",\"high\":\"8000000a\""), "{text}");
    }

    #[test]
    fn what_is_no_copy_is_refused_with_the_reason() {
        let text = copy().to_json();
        for (from, to, expected) in [
            ("\"format\":1", "\"format\":2", "format 2, and this version reads formats up to 1"),
            ("\"epoch\":1,", "", "missing field `epoch`"),
            ("\"epoch\":1,", "\"epoch\":1,\"more\":2,", "unknown field `more`"),
            ("range-\"", "range-8\"", "map `ranges`: `range-8` is no mapping of keys that are int32"),
            ("8000000a", "80", "map `ranges`: "),
            ("\"last\":2", "\"last\":6", "map `hash`: there are no virtual shards 0 to 6"),
            ("07070707-", "7-", "its id is no guid"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            let error = LocalCopy::from_json(&text.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }
}
