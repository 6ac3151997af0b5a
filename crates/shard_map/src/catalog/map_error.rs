//! What is wrong with a map: each error names the map, and both sides of what does not fit.

use crate::key::error::KeyError;
use crate::key::hash::VIRTUAL_SHARDS_MAX;
use crate::limits::{PINS_MAX, RANGES_MAX};
use crate::name::Name;

/// Why mappings make no map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A key or bound that is none of the map.
    #[error("map `{map}`: {error}")]
    Key {
        /// The map.
        map: Name,
        /// What is wrong.
        error: KeyError,
    },
    /// A key that is pinned twice.
    #[error("map `{map}` pins the key {key} twice, to `{first}` and to `{second}`; keep one")]
    PinnedTwice {
        /// The map.
        map: Name,
        /// The key.
        key: String,
        /// One shard.
        first: Name,
        /// The other.
        second: Name,
    },
    /// A range without keys.
    #[error("map `{map}`: the range {range} has no keys: its low bound is not below its high one")]
    EmptyRange {
        /// The map.
        map: Name,
        /// The range.
        range: String,
    },
    /// Ranges with keys in common.
    #[error("map `{map}`: the ranges {first} and {second} overlap; let one end where the other begins")]
    Overlap {
        /// The map.
        map: Name,
        /// The range that begins first, with its shard.
        first: String,
        /// The other.
        second: String,
    },
    /// Keys between two ranges that nothing holds.
    #[error(
        "map `{map}`: nothing holds the keys {keys} between {before} and {after}; add a range, or a hash below"
    )]
    MissingRange {
        /// The map.
        map: Name,
        /// The keys, as a range.
        keys: String,
        /// The range before them, or the first key.
        before: String,
        /// The range after them, or the last key.
        after: String,
    },
    /// A hash that this version does not know.
    #[error(
        "map `{map}`: there is no hash `{name}` version {version}; this version knows sha256 version 1, and a newer \
         one may know more"
    )]
    UnknownHash {
        /// The map.
        map: Name,
        /// Its name.
        name: String,
        /// Its version.
        version: u32,
    },
    /// Too few or too many virtual shards.
    #[error("map `{map}` has {count} virtual shards; there can be 1 to {VIRTUAL_SHARDS_MAX}")]
    VirtualShardCount {
        /// The map.
        map: Name,
        /// How many.
        count: u32,
    },
    /// More hashed columns than the key has, or none.
    #[error("map `{map}` hashes {columns} columns of its key, which is {key}; hash 1 to {count}")]
    HashedColumns {
        /// The map.
        map: Name,
        /// How many.
        columns: usize,
        /// The key's type.
        key: String,
        /// Its columns.
        count: usize,
    },
    /// A virtual shard that is nowhere.
    #[error("map `{map}`: virtual shard {number} of {count} is on no shard; place it")]
    MissingVirtualShard {
        /// The map.
        map: Name,
        /// Which one.
        number: u32,
        /// How many there are.
        count: u32,
    },
    /// A virtual shard that is placed twice.
    #[error("map `{map}` places virtual shard {number} twice, on `{first}` and on `{second}`; keep one")]
    PlacedTwice {
        /// The map.
        map: Name,
        /// Which one.
        number: u32,
        /// One shard.
        first: Name,
        /// The other.
        second: Name,
    },
    /// Virtual shards that do not exist.
    #[error("map `{map}` has {count} virtual shards, and {first} to {last} are not among them")]
    NoVirtualShard {
        /// The map.
        map: Name,
        /// The first one named.
        first: u32,
        /// The last one named.
        last: u32,
        /// How many there are.
        count: u32,
    },
    /// A mapping that is frozen and is none, or frozen by nothing.
    #[error("map `{map}`: {mapping} is frozen, and is no mapping of it, or it does not say by what")]
    FrozenNothing {
        /// The map.
        map: Name,
        /// The mapping's id.
        mapping: String,
    },
    /// A map that is too large.
    #[error(
        "map `{0}` has more than {PINS_MAX} pins or {RANGES_MAX} ranges; use a hash for most of its keys"
    )]
    TooLarge(Name),
}
