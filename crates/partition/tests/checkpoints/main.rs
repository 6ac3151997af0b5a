//! Flushes, checkpoints, compactions, and reads over them.
//!
//! What always holds: a row reads the same, and in the same order, wherever it lies: in memory, in one of
//! many checkpoints, or with its overflow apart.

mod cached_rows;
mod compaction_in_parts;
mod dead_marks;
mod idle_compactions;
mod log_extents;
mod many_checkpoints;
mod many_dead_containers;
mod overflow;
mod points_together;
#[path = "../rows/mod.rs"]
mod rows;
mod scans;
mod tombstones;
