//! The rows of a shard that is a Postgres database.
