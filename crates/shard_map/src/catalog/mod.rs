//! Catalogs: shards, and maps of keys to them.

#[expect(clippy::module_inception, reason = "the catalog is the chief thing of its folder")]
pub(crate) mod catalog;
pub(crate) mod frozen;
pub(crate) mod map;
pub(crate) mod map_builder;
pub(crate) mod map_error;
pub(crate) mod mapping_id;
pub(crate) mod placement;
pub(crate) mod route;
pub(crate) mod shard;
pub(crate) mod stamp;
