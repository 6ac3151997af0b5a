//! Blocks of extents on a local disk, so that what was read once need not be fetched again: a bounded copy
//! that is safe to lose.
//!
//! | file | content |
//! |---|---|
//! | `block_cache.rs` | the cache: open, get, offer, close |
//! | `writer.rs` | the task that writes |
//! | `shared.rs` | what both have |
//! | `index.rs` | where blocks are, and what has to go: pure |
//! | `record.rs` | a block as it is stored, and the list of blocks at a file's end |
//!
//! Blocks are appended to files, the oldest of which is removed as a whole when there is no room. Each file
//! ends with a list of its blocks, by which a start finds them again; a file without one, as a kill leaves
//! it, is removed. Nothing is synced.
//!
//! What always holds: a block is returned only if it was stored for just this place of this extent in this
//! life of the stamp, and its checksum is right; whatever is wrong with the disk is a miss, never an error of
//! a read; bytes on disk, blocks in the index and bytes that wait are bounded.

pub(crate) mod block_cache;
pub(crate) mod index;
pub(crate) mod record;
mod shared;
#[cfg(test)]
mod tests;
mod writer;
