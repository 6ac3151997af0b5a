//! Changes of a catalog as data, and what each does: one operation, one file.
//!
//! Operations edit a copy and look at nothing but what they change; the catalog is checked as a whole, and
//! epochs are given, once all changes are made (`apply.rs`).

pub(crate) mod apply;
pub(crate) mod error;
pub(crate) mod freeze;
pub(crate) mod maps;
pub(crate) mod merge_ranges;
pub(crate) mod pins;
pub(crate) mod place;
pub(crate) mod ranges;
pub(crate) mod refine;
pub(crate) mod rekey;
pub(crate) mod resize;
pub(crate) mod shards;
pub(crate) mod split_range;
