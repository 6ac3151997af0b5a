//! A range's streams as the layers above use them: an implementation of [`stream::StreamLayer`].
//!
//! As long as one process serves a stamp at a time, one range of the stamp has all streams, and a stream's
//! purpose is its name above; that each range partition gets a document of its own comes with the next step
//! (see the decision of 2026-11-28 on the layer of streams).
//!
//! | file | content |
//! |---|---|
//! | `stamp_layer.rs` | the layer |
//! | `held.rs` | what it knows of the range: names, owners, lists |
//! | `append.rs` | blocks become a part |
//! | `read.rs` | single blocks and runs of them, by ranged reads |
//! | `replay.rs` | a stream from a place to its end, parts read ahead |
//! | `replay_progress.rs` | how far replays are, for people |
//! | `modify.rs` | changes of lists become changes of the document |
//! | `extent_ids.rs` | the short names of extents that upper layers store |
//! | `part_starts.rs` | where an extent's parts begin |
//!
//! The body of a part is a sequence of blocks as [`stream::put_block`] writes them: each says in which extent
//! and where it lies, under its checksum, so that a ranged read of it alone proves that it is the right one.

mod append;
pub(crate) mod extent_ids;
pub(crate) mod held;
mod modify;
pub(crate) mod part_starts;
mod read;
pub(crate) mod replay;
pub(crate) mod replay_progress;
pub(crate) mod stamp_layer;
