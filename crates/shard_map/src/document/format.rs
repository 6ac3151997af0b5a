//! The document, as drawn here:
//!
//! ```json
//! {
//!   "format": 1,
//!   "name": "app",
//!   "id": "c9da6455-213d-42c9-9a79-3e9149a57833",
//!   "epoch": 7,
//!   "shards": [{"name": "one", "location": "postgres://db1/app", "tags": {"region": "eu"}, "since": 1}],
//!   "maps": [{
//!     "name": "tenants",
//!     "key": ["text", "int64"],
//!     "since": 7,
//!     "pins": [{"key": ["eu", "17"], "shard": "one", "state": "read-only", "since": 7}],
//!     "ranges": [{"low": ["eu"], "high": ["eu", "100"], "shard": "one", "since": 2}],
//!     "hash": {
//!       "name": "sha256", "version": 1, "columns": 2, "count": 1024,
//!       "placements": [{"first": 0, "last": 1023, "shard": "one", "since": 1}]
//!     },
//!     "frozen": [{"mapping": "virtual-17", "by": "move 00f3", "since": 7}]
//!   }]
//! }
//! ```
//!
//! A key of one column is its value, other keys are lists. An `int32` is a number; an `int64` is a text,
//! because JavaScript has no exact numbers above 2^53, and may be written as a number; the others are texts
//! (`value.rs`). Without `low` a range begins at the first key, without `high` it ends with the last; both
//! may have fewer values than the key. Without `state` a shard or mapping is online, without `since` it is so
//! since the catalog's epoch. A frozen mapping is named by its id as shards store it. An unknown field is an
//! error, so that none is overlooked. The order of shards, maps and mappings is free; it is written in the
//! order of names, keys and numbers.
//!
//! What always holds: what is written is read as the same catalog; a change that an older version would
//! misunderstand raises [`FORMAT`].

use crate::catalog::placement::{Epoch, State};
use crate::catalog::shard::Shard;
use crate::key::key_type::KeyType;
use crate::name::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The newest format, which is written.
pub const FORMAT: u64 = 1;

/// What every format has.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) format: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) format: u64,
    pub(super) name: Name,
    pub(super) id: String,
    pub(super) epoch: Epoch,
    #[serde(default)]
    pub(super) shards: Vec<Shard>,
    #[serde(default)]
    pub(super) maps: Vec<MapText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MapText {
    pub(super) name: Name,
    pub(super) key: KeyType,
    pub(super) since: Option<Epoch>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pins: Vec<PinText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ranges: Vec<RangeText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hash: Option<HashText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) frozen: Vec<FrozenText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FrozenText {
    pub(super) mapping: String,
    pub(super) by: String,
    pub(super) since: Option<Epoch>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PinText {
    pub(super) key: Value,
    pub(super) shard: Name,
    #[serde(default, skip_serializing_if = "State::is_online")]
    pub(super) state: State,
    pub(super) since: Option<Epoch>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RangeText {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) low: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) high: Option<Value>,
    pub(super) shard: Name,
    #[serde(default, skip_serializing_if = "State::is_online")]
    pub(super) state: State,
    pub(super) since: Option<Epoch>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HashText {
    pub(super) name: String,
    pub(super) version: u32,
    pub(super) columns: usize,
    pub(super) count: u32,
    pub(super) placements: Vec<RunText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunText {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) shard: Name,
    #[serde(default, skip_serializing_if = "State::is_online")]
    pub(super) state: State,
    pub(super) since: Option<Epoch>,
}
