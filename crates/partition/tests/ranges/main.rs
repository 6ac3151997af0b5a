//! Splits and merges of ranges, hand-overs, and the partition map.
//!
//! What always holds: after each of them, and whatever interrupts it, every key has one owner and every
//! acknowledged row is there.

mod broken_off;
mod fencing;
mod hand_over_copies;
mod heat;
mod lease_questions;
mod map_copy_refused;
mod map_kept_twice;
mod operate;
mod pinned_snapshots;
mod range_changes;
#[path = "../rows/mod.rs"]
mod rows;
mod waits;
