//! What a start does: the journal is recovered, settled with the stream manager's records, and each extent's
//! file is brought up to it.
//!
//! `open` does it, step by step; the others are its steps. What always holds: what is known of an extent is
//! never less than what was acknowledged, or the extent takes no more appends and its damage is logged.

pub(crate) mod extent_files;
pub(crate) mod forgotten;
mod lost_file;
mod misplaced;
pub(crate) mod open;
pub(crate) mod settle;
mod unsure_end;
mod whole_blocks;

pub(crate) use open::{OnNoSpace, RecoveredNode, read_whole};
pub(crate) use settle::ListedExtent;
