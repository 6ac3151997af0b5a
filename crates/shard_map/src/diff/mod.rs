//! Differences of catalogs as data: what a log of changes holds, and what an undo reverses.

pub(crate) mod difference;
pub(crate) mod edit;
pub(crate) mod patch;
pub(crate) mod undo;
