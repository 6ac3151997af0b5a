//! The parts of a difference, as JSON.
//!
//! What always holds: a part has what was there and what is there now, each absent if nothing was or is. Keys
//! and bounds are their encoded bytes in hexadecimal digits, so a part can be read without its map.

use crate::catalog::frozen::Frozen;
use crate::catalog::map::Hashed;
use crate::catalog::placement::{Epoch, Placement};
use crate::catalog::shard::Shard;
use crate::key::hash::KeyHash;
use crate::key::hex::{from_hex, to_hex};
use crate::key::key_type::KeyType;
use crate::key::kind::KeyKind;
use crate::name::Name;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Encoded bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&to_hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = from_hex(&text);
        bytes.map(Bytes).ok_or_else(|| serde::de::Error::custom("bytes are written as hexadecimal digits"))
    }
}

impl Serialize for KeyType {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(self.kinds().iter().map(|kind| kind.name()))
    }
}

impl<'de> Deserialize<'de> for KeyType {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        let kinds: Result<Vec<KeyKind>, _> = names.iter().map(|name| KeyKind::parse(name)).collect();
        kinds.and_then(KeyType::new).map_err(serde::de::Error::custom)
    }
}

/// How keys are hashed, as documents have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HashedText {
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) columns: usize,
    pub(crate) count: u32,
}

impl HashedText {
    pub(crate) fn of(hashed: Hashed) -> Self {
        let (name, version) = (hashed.hash.name().to_owned(), hashed.hash.version());
        HashedText { name, version, columns: hashed.columns, count: hashed.count }
    }

    /// None: this version does not know the hash.
    pub(crate) fn hashed(&self) -> Option<Hashed> {
        let hash = KeyHash::named(&self.name, self.version)?;
        Some(Hashed { hash, columns: self.columns, count: self.count })
    }
}

impl Serialize for Hashed {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        HashedText::of(*self).serialize(out)
    }
}

impl<'de> Deserialize<'de> for Hashed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = HashedText::deserialize(from)?;
        let unknown = || format!("there is no hash `{}` version {} in this version", text.name, text.version);
        text.hashed().ok_or_else(|| serde::de::Error::custom(unknown()))
    }
}

/// What a map is beside its mappings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapHeader {
    /// The type of its keys.
    pub key: KeyType,
    /// How keys are hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hashed>,
    /// Since when it is as it is.
    pub since: Epoch,
}

/// A shard that became another, came or went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardEdit {
    /// Its name.
    pub name: Name,
    /// What it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Shard>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Shard>,
}

/// A map that became another, came or went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapEdit {
    /// Its name.
    pub name: Name,
    /// What it was; absent: it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<MapHeader>,
    /// What it is; absent: it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<MapHeader>,
    /// Its pins, by their keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<PinEdit>,
    /// Its ranges, by their low bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RangeEdit>,
    /// Its virtual shards, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub virtual_shards: Vec<VirtualEdit>,
    /// What is frozen of it, by the mappings' ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<FrozenEdit>,
}

/// A mapping that was frozen, thawed, or frozen by something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrozenEdit {
    /// The mapping's id as text.
    pub mapping: String,
    /// What had frozen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Frozen>,
    /// What froze it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Frozen>,
}

/// A pin that became another, came or went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinEdit {
    /// The encoded key.
    pub key: Bytes,
    /// What it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Placement>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Placement>,
}

/// A range that became another, came or went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeEdit {
    /// The encoded low bound.
    pub low: Bytes,
    /// What it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<RangeBody>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<RangeBody>,
}

/// A range without its low bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeBody {
    /// The encoded high bound; absent: it goes to the last key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<Bytes>,
    /// Where its keys are.
    pub placement: Placement,
}

/// Virtual shards in a row that were the same and are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualEdit {
    /// The first of them.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// What they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Placement>,
    /// What they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Placement>,
}
