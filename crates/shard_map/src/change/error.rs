//! Why a catalog was not changed: each error names what is in the way.

use crate::catalog::catalog::CatalogError;
use crate::catalog::map_error::MapError;
use crate::catalog::shard::ShardError;
use crate::limits::FROZEN_BY_BYTES_MAX;
use crate::name::Name;

/// A change that can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The catalog would not be right afterwards.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A key or bound is none of the map, or the map would not be right afterwards.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The shard is not right in itself.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// There is no such shard.
    #[error("catalog `{catalog}` has no shard `{shard}`; add it first")]
    NoShard {
        /// The catalog.
        catalog: Name,
        /// The shard.
        shard: Name,
    },
    /// There is such a shard already.
    #[error("catalog `{catalog}` has a shard `{shard}` already, at {location}")]
    ShardExists {
        /// The catalog.
        catalog: Name,
        /// The shard.
        shard: Name,
        /// Where that one is.
        location: String,
    },
    /// Mappings are on the shard.
    #[error(
        "shard `{shard}` can't be removed: {count} mappings are on it, such as {mapping} of map `{map}`; move them first"
    )]
    ShardInUse {
        /// The shard.
        shard: Name,
        /// How many mappings.
        count: usize,
        /// The map of one.
        map: Name,
        /// That one.
        mapping: String,
    },
    /// There is no such map.
    #[error("catalog `{catalog}` has no map `{map}`")]
    NoMap {
        /// The catalog.
        catalog: Name,
        /// The map.
        map: Name,
    },
    /// There is such a map already.
    #[error("catalog `{catalog}` has a map `{map}` already")]
    MapExists {
        /// The catalog.
        catalog: Name,
        /// The map.
        map: Name,
    },
    /// The key has a pin already.
    #[error(
        "map `{map}` pins the key {key} already, to shard `{shard}`; place that pin on another shard instead"
    )]
    Pinned {
        /// The map.
        map: Name,
        /// The key.
        key: String,
        /// Where the pin is.
        shard: Name,
    },
    /// The key has no pin.
    #[error("map `{map}` does not pin the key {key}")]
    NotPinned {
        /// The map.
        map: Name,
        /// The key.
        key: String,
    },
    /// No range begins there.
    #[error("map `{map}` has no range that begins at {at}{nearest}")]
    NoRange {
        /// The map.
        map: Name,
        /// Where it should begin.
        at: String,
        /// The range that is there, as the end of the sentence, or nothing.
        nearest: String,
    },
    /// A range begins there already.
    #[error("map `{map}`: the range {range} begins at {at}, so there is nothing to split")]
    SplitAtEdge {
        /// The map.
        map: Name,
        /// Where.
        at: String,
        /// The range.
        range: String,
    },
    /// Ranges that are no neighbours, or not in one place.
    #[error("map `{map}`: the ranges {first} and {second} can't become one, because {why}")]
    NoMerge {
        /// The map.
        map: Name,
        /// The range before, with its shard.
        first: String,
        /// The range after.
        second: String,
        /// What differs.
        why: String,
    },
    /// A frozen mapping, whose keys stay, and which stays where it is.
    #[error(
        "map `{map}`: {mapping} is frozen by {by} ({state}), so its keys don't change and nothing else places \
         it; finish or undo that first"
    )]
    Frozen {
        /// The map.
        map: Name,
        /// The mapping in words.
        mapping: String,
        /// Its state.
        state: crate::catalog::placement::State,
        /// What froze it.
        by: String,
    },
    /// A mapping that was to be thawed and is not frozen.
    #[error("map `{map}`: {mapping} is not frozen")]
    NotFrozen {
        /// The map.
        map: Name,
        /// The mapping in words.
        mapping: String,
    },
    /// A text of what freezes a mapping that is empty or too long.
    #[error("map `{0}`: what freezes a mapping is named by 1 to {FROZEN_BY_BYTES_MAX} bytes")]
    FrozenBy(Name),
    /// The map has no hash.
    #[error("map `{0}` has no hash, and so no virtual shards")]
    NoHash(Name),
    /// The number of virtual shards does not fit to the former one.
    #[error(
        "map `{map}` has {from} virtual shards, and can't have {to}: one number must be a multiple of the other"
    )]
    NoMultiple {
        /// The map.
        map: Name,
        /// How many there are.
        from: u32,
        /// How many there were to be.
        to: u32,
    },
    /// Virtual shards that were to become one are in two places.
    #[error(
        "map `{map}`: virtual shards {first} on `{first_shard}` ({first_state}) and {second} on `{second_shard}` \
         ({second_state}) can't become one; bring them together first"
    )]
    Apart {
        /// The map.
        map: Name,
        /// One.
        first: u32,
        /// Its shard.
        first_shard: Name,
        /// Its state.
        first_state: crate::catalog::placement::State,
        /// The other.
        second: u32,
        /// Its shard.
        second_shard: Name,
        /// Its state.
        second_state: crate::catalog::placement::State,
    },
}
