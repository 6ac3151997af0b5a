//! Plans: what would be changed and moved, out of what is known. Pure functions.

pub(crate) mod add_shard;
pub(crate) mod drain;
pub(crate) mod estimate;
pub(crate) mod facts;
pub(crate) mod measure;
pub(crate) mod move_mapping;
#[allow(clippy::module_inception)] // The file of the type is named as the type is.
pub(crate) mod plan;
pub(crate) mod rebalance;
pub(crate) mod refusal;
pub(crate) mod search;
pub(crate) mod split;
