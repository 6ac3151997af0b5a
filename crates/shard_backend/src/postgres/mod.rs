//! The rows of a shard that is a Postgres database.

pub(crate) mod backend;
mod fence;
mod schema;
mod value;
