//! Decisions over the rows of one blob's name: which rows are read, what a change does to them, and how that
//! becomes an operation of the partition layer.
//!
//! What always holds: a decision is pure; it sees only rows that it has requested.

pub(crate) mod blob_change;
pub(crate) mod blob_operation;
pub(crate) mod blob_rows;
#[cfg(test)]
pub(crate) mod memory_blob;
pub(crate) mod row_request;
pub(crate) mod stop;
pub(crate) mod visible_rows;
