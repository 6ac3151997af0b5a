//! The rows of a shard that is a Postgres database.

pub(crate) mod backend;
mod count;
mod fence;
mod scan;
mod schema;
mod statement;
mod value;
