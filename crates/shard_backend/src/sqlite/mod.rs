//! The rows of a shard that is a SQLite database.

pub(crate) mod backend;
mod count;
mod fence;
mod schema;
mod value;
