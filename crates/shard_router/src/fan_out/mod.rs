//! Questions to all shards of a map, and what becomes of their answers.

pub(crate) mod aggregate;
pub(crate) mod error;
#[allow(clippy::module_inception)] // The file of the fan-out is named as it is.
pub(crate) mod fan_out;
pub(crate) mod merge;
pub(crate) mod part;
pub(crate) mod settings;
mod within;
