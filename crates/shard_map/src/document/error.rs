//! Why a text is no catalog.

use super::format::FORMAT;
use crate::catalog::catalog::CatalogError;
use crate::key::error::KeyError;
use crate::name::Name;

/// What is wrong with a catalog's document.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is no JSON of the right shape.
    #[error("the catalog can't be read: {0}")]
    Shape(String),
    /// It has no format, so it is something else.
    #[error("this is no catalog of shards: it has no number `format`")]
    NoFormat,
    /// A newer version wrote it.
    #[error("the catalog has format {0}, and this version reads formats up to {FORMAT}; use a newer version")]
    Newer(u64),
    /// Its id is no Guid.
    #[error("the catalog's id `{0}` is no guid; write 32 hexadecimal digits")]
    Id(String),
    /// A shard or map is there twice.
    #[error("the catalog has two {what} of the name `{name}`; rename or remove one")]
    Twice {
        /// `shards` or `maps`.
        what: &'static str,
        /// Their name.
        name: Name,
    },
    /// A key or bound is none of its map.
    #[error("map `{map}`, {place}: {error}")]
    Key {
        /// The map.
        map: Name,
        /// Which mapping, by its shard: `a pin to `one``.
        place: String,
        /// What is wrong.
        error: KeyError,
    },
    /// Its parts do not fit together.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}
