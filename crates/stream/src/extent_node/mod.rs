//! The extent node: keeps extents on its disk. It has extents and blocks, and no notion of streams or keys.
//!
//! Small appends go to the journal (one sync for all that wait) and to their extent later; large ones go
//! straight to the extent and only their length goes to the journal. What always holds: a returned append is
//! durable and reads back the same bytes, or the read fails loudly.
//!
//! Folders: `journal` (that copy, and each extent's facts), `recovery` (what a start does), `damage` (check
//! and repair). The other files are the node, its extents, and what they do while it runs.
//!
//! ```text
//! journal/*             see journal/mod.rs
//! extents/<16 hex>      append blocks one after the other, see block.rs
//! ```

mod append;
mod damage;
mod drain;
mod extent;
mod journal;
mod large_run;
mod lifecycle;
mod node;
mod paths;
mod read;
mod recovery;
mod state;
mod stop;

pub use damage::DamagedPart;
pub(crate) use damage::{NodeFacts, WalkStep, read_node};
pub(crate) use node::{ExtentNode, ExtentStat};
pub(crate) use paths::extent_path;
pub(crate) use read::ExtentReader;
pub(crate) use recovery::{ListedExtent, OnNoSpace, RecoveredNode, read_whole};
pub(crate) use state::{ExtentState, ExtentTable};
