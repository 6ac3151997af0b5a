//! Extents in an object store: chains of parts, each created once, ended by a seal that has the name of the
//! part that would have come next.
//!
//! | file | content |
//! |---|---|
//! | `part_header.rs` | the first 256 bytes of each object |
//! | `part_path.rs` | the names of objects |
//! | `chain.rs` | which objects count, and what an unbroken chain is |
//! | `put_answer.rs` | what an answer of the store means |
//! | `choose_after_append.rs` | what a writer does after an answer |
//! | `append_window.rs` | appends that are under way side by side, acknowledged in order |
//! | `seal_walk.rs` | finding the end of an extent and sealing it |
//! | `seal_body.rs` | the list of parts in a seal |
//! | `extent_load.rs` | reading an extent of recorded length |
//! | `bundle.rs` | copies of small parts, many in one object |
//! | `bundle_path.rs` | the names of those |
//!
//! What always holds: an object is never overwritten; the part at an offset and a seal there exclude each
//! other; what lies behind a hole does not count.

pub(crate) mod append_window;
pub(crate) mod bundle;
pub(crate) mod bundle_path;
pub(crate) mod chain;
pub(crate) mod choose_after_append;
pub(crate) mod extent_load;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod part_header;
pub(crate) mod part_path;
pub(crate) mod put_answer;
pub(crate) mod seal_body;
pub(crate) mod seal_walk;
