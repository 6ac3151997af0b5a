//! A map as small clients read it: keys and bounds are in their encoded bytes, as lower-case hexadecimal
//! digits, whose order is the order of keys.
//!
//! ```json
//! {
//!   "catalog": "app", "epoch": 7, "map": "tenants", "key": ["text", "int64"],
//!   "pins": {"6575000180…": {"shard": "one", "state": "read-only", "since": 7}},
//!   "ranges": [{"low": "", "high": "6d", "shard": "one", "state": "online", "since": 2}],
//!   "hash": {"name": "sha256", "version": 1, "columns": 2, "count": 1024,
//!            "placements": [{"first": 0, "last": 1023, "shard": "one", "state": "online", "since": 1}]},
//!   "shards": {"one": {"location": "postgres://db1/app", "state": "online", "tags": {"region": "eu"}}}
//! }
//! ```
//!
//! What always holds: ranges are in order; a map without hash has `null`.

use serde_json::{Value, json};
use shard_map::{Catalog, Placement, Shard, ShardMap};
use std::fmt::Write as _;

/// The map's document.
pub(crate) fn map_json(catalog: &Catalog, map: &ShardMap) -> Value {
    let pins = map.pins().map(|(key, placement)| (hex(key.as_bytes()), placed(placement, json!({}))));
    let ranges = map.ranges().map(|(low, range)| {
        let high = range.high.as_ref().map(|high| hex(high.as_bytes()));
        placed(&range.placement, json!({ "low": hex(low.as_bytes()), "high": high }))
    });
    let hash = map.virtual_shards().map(|layer| {
        let hashed = layer.hashed();
        let runs = layer.runs().into_iter();
        let runs =
            runs.map(|(first, last, placement)| placed(placement, json!({ "first": first, "last": last })));
        json!({
            "name": hashed.hash.name(), "version": hashed.hash.version(), "columns": hashed.columns,
            "count": hashed.count, "placements": runs.collect::<Vec<_>>(),
        })
    });
    let kinds = map.key_type().kinds().iter().map(|kind| kind.name());
    let shards = catalog.shards().map(|shard| (shard.name.to_string(), shard_json(shard)));
    json!({
        "catalog": catalog.name(), "epoch": catalog.epoch(), "map": map.name(), "key": kinds.collect::<Vec<_>>(),
        "pins": pins.collect::<serde_json::Map<_, _>>(), "ranges": ranges.collect::<Vec<_>>(), "hash": hash,
        "shards": shards.collect::<serde_json::Map<_, _>>(),
    })
}

fn shard_json(shard: &Shard) -> Value {
    json!({ "location": shard.location, "state": shard.state, "tags": shard.tags })
}

fn placed(placement: &Placement, mut mapping: Value) -> Value {
    mapping["shard"] = json!(placement.shard);
    mapping["state"] = json!(placement.state);
    mapping["since"] = json!(placement.since);
    mapping
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
