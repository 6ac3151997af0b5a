//! One question to all shards: rows of a table in an order, or aggregates of them.

mod accumulate;
mod held;
pub(crate) mod operation;
pub(crate) mod outcome;
mod query;
pub(crate) mod request;
mod sorted;
