//! Extents in the object store: what a store of extents does.
//!
//! | file | does |
//! |---|---|
//! | `parts.rs` | creates, reads, lists and deletes single parts and seals |
//! | `read_ahead.rs` | keeps what was read of a range before it is taken |
//! | `header_ahead.rs` | reads headers before a walk asks for them |
//! | `seal.rs` | finds the end of an extent and seals it there |
//! | `load.rs` | reads an extent of recorded length, part by part |
//! | `log.rs` | a log: appends under way side by side, roll-over |
//! | `part_task.rs` | one part under way |
//! | `part_gather.rs` | parts that wait for the others of their bundle |
//! | `bundles.rs` | makes and reads bundles of small parts |
//! | `bundle_turns.rs` | when a process may send or read one |

pub(crate) mod bundle_turns;
pub(crate) mod bundles;
pub(crate) mod header_ahead;
pub(crate) mod load;
pub(crate) mod log;
pub(crate) mod log_core;
pub(crate) mod log_handle;
pub(crate) mod part_gather;
pub(crate) mod part_task;
pub(crate) mod parts;
pub(crate) mod read_ahead;
pub(crate) mod seal;
