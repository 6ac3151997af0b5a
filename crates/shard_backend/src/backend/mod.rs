//! Backends: what holds the rows of shards.

#[allow(clippy::module_inception)] // The file of the trait is named as the trait is.
pub(crate) mod backend;
pub(crate) mod batch;
pub(crate) mod claim;
pub(crate) mod error;
pub(crate) mod fence;
pub(crate) mod memory;
pub(crate) mod shardlet;
pub(crate) mod tables;
