//! The extent node: keeps extents on its disk. It has extents and blocks, and no notion of streams or keys.
//!
//! Small appends go to the journal (one sync for all that wait) and to their extent later; large ones go
//! straight to the extent and only their length goes to the journal. What always holds: a returned append is
//! durable and reads back the same bytes, or the read fails loudly.
//!
//! ```text
//! journal/*             see journal/mod.rs
//! extents/<16 hex>      append blocks one after the other, see block.rs
//! ```

mod append;
mod check;
mod damaged_part;
mod drain;
mod extent;
mod extent_files;
mod forgotten;
mod journal;
mod lifecycle;
mod lost_file;
mod misplaced;
mod node;
mod open;
mod paths;
mod read;
mod repair;
mod settle;
mod state;
mod stop;
mod unsure_end;
mod walk;
mod whole_blocks;

pub(crate) use check::{NodeFacts, read_node};
pub use damaged_part::DamagedPart;
pub(crate) use node::{ExtentNode, ExtentStat};
pub(crate) use open::{OnNoSpace, RecoveredNode, read_whole};
pub(crate) use paths::extent_path;
pub(crate) use read::ExtentReader;
pub(crate) use settle::ListedExtent;
pub(crate) use walk::WalkStep;
