//! A stamp read at one revision of its metadata store, without owning it and without a change in either
//! store: for checks, for what operators look at, and for a copy of it into a folder.
//!
//! | file | content |
//! |---|---|
//! | `stamp_snapshot.rs` | all documents, owners and processes at one revision |
//! | `parts.rs` | the parts of an extent, of recorded length or open |
//! | `parts_ahead.rs` | objects read ahead, in order |
//! | `ends.rs` | where open extents end now |
//! | `snapshot_layer.rs` | the streams of a range, to read: a [`stream::StreamLayer`] |
//! | `snapshot_streams.rs` | what it knows of them, and how blocks are read |
//! | `snapshot_replay.rs` | a stream of it from a place to its end |
//! | `part_cache.rs` | parts that were read last |
//! | `check_extent.rs` | every part, block and seal of an extent |
//!
//! What always holds: nothing is created, changed or deleted; what is read has its chain and checksums
//! verified, or an error names what is damaged. Open extents are not sealed: their end is where the chain of
//! parts ends when it is read, which is at or behind all that was acknowledged before the snapshot.

pub(crate) mod check_extent;
pub(crate) mod ends;
pub(crate) mod part_cache;
pub(crate) mod parts;
pub(crate) mod parts_ahead;
pub(crate) mod snapshot_layer;
pub(crate) mod snapshot_replay;
pub(crate) mod snapshot_streams;
pub(crate) mod stamp_snapshot;
