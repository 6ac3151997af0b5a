//! Writes a catalog's document.

use super::format::{Document, FORMAT, FrozenText, HashText, MapText, PinText, RangeText, RunText};
use super::value_json::key_to_json;
use crate::catalog::catalog::Catalog;
use crate::catalog::map::ShardMap;
use crate::key::value::KeyValue;
use base::guid::guid_text;
use serde_json::Value;

impl Catalog {
    /// The document on one line.
    pub fn to_json(&self) -> String {
        // Names, numbers and texts only: nothing that JSON has no form for.
        serde_json::to_string(&document(self)).unwrap_or_default()
    }

    /// The document, indented.
    pub fn to_json_pretty(&self) -> String {
        serde_json::to_string_pretty(&document(self)).unwrap_or_default()
    }
}

fn document(catalog: &Catalog) -> Document {
    Document {
        format: FORMAT,
        name: catalog.name.clone(),
        id: guid_text(&catalog.id),
        epoch: catalog.epoch,
        shards: catalog.shards.values().cloned().collect(),
        maps: catalog.maps.values().map(|map| map_text(map)).collect(),
    }
}

fn map_text(map: &ShardMap) -> MapText {
    let json =
        |values: Result<Vec<KeyValue>, _>| -> Value { key_to_json(&values.unwrap_or_default(), &map.key) };
    let bound = |bytes: &[u8]| json(map.key.decode_bound(bytes));
    let pins = map.pins.iter().map(|(key, placement)| PinText {
        key: json(map.key.decode(key.as_bytes())),
        shard: placement.shard.clone(),
        state: placement.state,
        since: Some(placement.since),
    });
    let ranges = map.ranges.iter().map(|(low, range)| RangeText {
        low: (!low.is_first()).then(|| bound(low.as_bytes())),
        high: range.high.as_ref().map(|high| bound(high.as_bytes())),
        shard: range.placement.shard.clone(),
        state: range.placement.state,
        since: Some(range.placement.since),
    });
    let hash = map.virtual_shards.as_ref().map(|layer| HashText {
        name: layer.hashed.hash.name().to_owned(),
        version: layer.hashed.hash.version(),
        columns: layer.hashed.columns,
        count: layer.hashed.count,
        placements: layer
            .runs()
            .into_iter()
            .map(|(first, last, placement)| RunText {
                first,
                last,
                shard: placement.shard.clone(),
                state: placement.state,
                since: Some(placement.since),
            })
            .collect(),
    });
    let frozen = map.frozen.iter().map(|(mapping, frozen)| FrozenText {
        mapping: mapping.to_string(),
        by: frozen.by.clone(),
        since: Some(frozen.since),
    });
    MapText {
        name: map.name.clone(),
        key: map.key.clone(),
        since: Some(map.since),
        pins: pins.collect(),
        ranges: ranges.collect(),
        hash,
        frozen: frozen.collect(),
    }
}
