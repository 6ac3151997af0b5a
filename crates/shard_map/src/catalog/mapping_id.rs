//! Names of mappings, as shards store them.

use crate::key::encoded::{Bound, EncodedKey};
use crate::key::hex::{from_hex, to_hex};
use crate::key::key_type::KeyType;
use std::fmt;

/// Which mapping of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MappingId {
    /// The pin of a key.
    Pin(EncodedKey),
    /// The range that begins here.
    Range(Bound),
    /// A virtual shard.
    Virtual(u32),
}

impl MappingId {
    /// Reads the text of a mapping's id, if its key or bound is one of the type.
    pub fn parse(text: &str, key: &KeyType) -> Option<Self> {
        let (layer, rest) = text.split_once('-')?;
        match layer {
            "pin" => key.stored_key(&from_hex(rest)?).ok().map(MappingId::Pin),
            "range" => key.stored_bound(&from_hex(rest)?).ok().map(MappingId::Range),
            "virtual" => rest.parse().ok().map(MappingId::Virtual),
            _ => None,
        }
    }
}

/// As shards store it: `pin-` or `range-` and the bytes in hexadecimal digits, `virtual-` and the number.
impl fmt::Display for MappingId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MappingId::Pin(key) => write!(out, "pin-{}", to_hex(key.as_bytes())),
            MappingId::Range(low) => write!(out, "range-{}", to_hex(low.as_bytes())),
            MappingId::Virtual(number) => write!(out, "virtual-{number}"),
        }
    }
}
