//! Seeded tests: whole lives of the partition layer on the simulated disk, which lies, dies, fills up or is
//! damaged as the seed says. `cargo xtask sim` runs this program with many seeds.
//!
//! Why one program: all that belongs to the simulation runs with it, and nothing else does. What always
//! holds: a seed gives the same life each time. `LARIMAR_SIM_SEEDS` sets how many seeds run,
//! `LARIMAR_SIM_SEED` runs one.

mod contained_damage;
mod damage;
mod full_disk_starts;
mod hand_over_crashes;
mod histories;
mod lease_ends;
mod repair;
#[path = "../rows/mod.rs"]
mod rows;
mod seeds;
mod small_disk;
