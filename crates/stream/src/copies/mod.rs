//! Streams copied byte for byte, between a data folder and a stamp of several processes: ids of extents and
//! offsets of blocks stay, because checkpoints and blocks name them.
//!
//! | file | content |
//! |---|---|
//! | `manifest.rs` | which streams there are, and which extents each lists |
//! | `folder_source.rs` | a folder that is read and not changed |
//! | `folder_target.rs` | a folder that is made |

pub(crate) mod folder_source;
pub(crate) mod folder_target;
pub(crate) mod manifest;
