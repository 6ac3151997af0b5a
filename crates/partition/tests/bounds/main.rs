//! Bounds and refusals: of memory, of disk space, of files, of threads.
//!
//! What always holds: what is refused has changed nothing, whatever waits is woken with an outcome, and all
//! goes on once there is room again.

mod abandoned;
mod bounds;
mod full_disk;
mod refused_appends;
mod refused_threads;
#[path = "../rows/mod.rs"]
mod rows;
mod same_seed;
mod slowed_writers;
