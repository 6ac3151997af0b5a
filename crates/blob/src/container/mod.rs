//! Containers: their row and the operations on it.

pub(crate) mod container_ops;
pub(crate) mod container_row;
mod containers;
