//! What comes out of a recovery, beside the map, and why none does.

use shard_map::{CatalogError, Epoch, MapError, Name};

/// Why no map comes out of what there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// There is neither a map nor a copy.
    #[error("there is no map and no copy of a shard to recover one from")]
    Nothing,
    /// Copies of two catalogs.
    #[error(
        "shard `{second}` belongs to catalog `{second_catalog}`, and `{first}` to `{first_catalog}`; recover each by itself"
    )]
    TwoCatalogs {
        /// A shard, or the map.
        first: String,
        /// Its catalog.
        first_catalog: Name,
        /// Another shard.
        second: Name,
        /// Its catalog.
        second_catalog: Name,
    },
    /// Two sources have different types of keys, or hashes, for one map.
    #[error(
        "map `{map}`: {first} and {second} differ in the key's type or the hash; choose which of them is believed"
    )]
    TwoForms {
        /// The map.
        map: Name,
        /// One source.
        first: String,
        /// Another.
        second: String,
    },
    /// Two shards claim the same keys, and nothing says which is right.
    #[error(
        "map `{map}`: shard `{first}` (since epoch {first_since}) and shard `{second}` (since epoch {second_since}) both \
         have keys of {mapping}; choose which of them is believed"
    )]
    Contradiction {
        /// The map.
        map: Name,
        /// The mapping that the second claims.
        mapping: String,
        /// One shard.
        first: Name,
        /// Since when it has them.
        first_since: Epoch,
        /// The other.
        second: Name,
        /// Since when it has them.
        second_since: Epoch,
    },
    /// A map that has ranges, of which no copy has any; without them it would be another map.
    #[error("map `{map}`: its ranges are on no shard; is a shard's copy missing?")]
    NoRanges {
        /// The map.
        map: Name,
    },
    /// The claims make no map.
    #[error("{error}; is a shard's copy missing?")]
    Map {
        /// What is wrong.
        error: MapError,
    },
    /// The maps make no catalog.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// A recovered map, and what was decided on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Claims that lost against newer ones: map, mapping, its shard, the shard that has the keys.
    pub superseded: Vec<(Name, String, Name, Name)>,
    /// Mappings that no believed copy has, and that are where the old map has them: map, mapping, shard.
    pub from_map: Vec<(Name, String, Name)>,
    /// Mappings that are frozen as in the old map, because they have the same keys: map, mapping, by what.
    pub frozen: Vec<(Name, String, String)>,
    /// Mappings that were frozen in the old map and are not: their keys are others, or they are no more.
    pub thawed: Vec<(Name, String, String)>,
    /// Whether there was no map: no copy says what was frozen in it.
    pub is_map_lost: bool,
}
