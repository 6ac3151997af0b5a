//! The rows of a shard that is a SQLite database.

pub(crate) mod backend;
mod count;
mod fence;
mod reader;
mod schema;
mod value;
