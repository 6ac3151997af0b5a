//! A world under a seed: clock, chance, disk and tasks for the real layers, so that a run with crashes and
//! lies of the disk can be repeated exactly. For tests only.
//!
//! What always holds: the same seed gives the same run, which [`SimDisk::trace`] proves.
#![allow(clippy::disallowed_methods)] // The simulation is one of the two places that make clocks and tasks.

mod disk;
mod random;
mod world;

pub use disk::{Faults, SimDisk};
pub use random::SimRandom;
pub use world::{SimClock, SimSpawner, World};
