//! A shard's own copy of what is on it, and the fence that is checked at each write.

pub(crate) mod copy;
pub(crate) mod copy_json;
pub(crate) mod fence;
pub(crate) mod local_store;
pub(crate) mod memory;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod rows;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
pub(crate) mod table;
