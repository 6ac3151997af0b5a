//! The official Rust clients against the release binary. One program, so that the clients are linked once.

mod blobs;
mod queues;
mod server;
mod tables;
