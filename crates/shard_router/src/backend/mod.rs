//! Kinds of shards: what connects to them, and their operations behind a fence.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod fence_rows;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_connection;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_error;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_statement;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_transaction;
pub(crate) mod rows;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
pub(crate) mod tables;
