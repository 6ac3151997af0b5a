//! Damage of a node's files: how a check finds it, and what a repair does to it.
//!
//! What always holds: a check changes nothing; a repair writes only blocks that it knows whole, and ends that
//! an operator has accepted.

mod check;
mod damaged_part;
mod repair;
mod walk;

pub(crate) use check::{NodeFacts, read_node};
pub use damaged_part::DamagedPart;
pub(crate) use walk::WalkStep;
