//! The ground floor: everything that can differ between two runs, behind traits, and the small tools that
//! every layer needs.
//!
//! Clock, randomness, disk and spawning are traits here, with the real ones in [`system`] and a disk that
//! lives in memory in [`memory_disk`]. The layers above take an [`Environment`] and reach for nothing else,
//! so that the same code runs in production and, under a seed, on a disk that lies (crate `sim`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // This crate is where the real things live.

mod box_future;
mod byte_size;
pub mod checksum;
pub mod clock;
pub mod codec;
pub mod connector;
pub mod date_time;
pub mod disk;
mod environment;
pub mod file_lock;
pub mod guid;
mod loop_sign;
pub mod metrics;
pub mod nearest;
pub mod random;
pub mod spawner;
pub mod system;
pub mod wakes;

pub use box_future::BoxFuture;
pub use byte_size::ByteSize;
pub use clock::{Clock, Ticks};
pub use connector::{Connector, Socket};
pub use disk::{Disk, DiskFile, OpenMode, memory_disk, overlay_disk};
pub use environment::Environment;
pub use file_lock::FileLock;
pub use loop_sign::LoopSign;
pub use metrics::Metrics;
pub use random::Random;
pub use spawner::{Spawner, TaskThread, give_way};

/// A fast hasher that is the same in each run. Not for keys that strangers choose, nor for anything stored.
pub type FixedHasher = foldhash::fast::FixedState;
