//! A checkpoint: sorted rows in the row data stream, each row once, with index, filters and statistics.
//!
//! Written once (`writer`), then only read (`open_checkpoint`): point lookups ask the part's filter, then its
//! index, then one row block; range reads walk row blocks in order (`cursor`). All blocks come through the
//! process-wide cache. Long overflows of rows lie beside the row blocks (`overflow`) and are read only for
//! readers that need them. What always holds: a checkpoint that the metadata stream names never changes.

mod abbreviated_keys;
mod aside;
mod check;
mod compression;
mod cursor;
mod damage;
mod index_block;
mod keys_in;
mod merged_row;
mod needed_extents;
mod open_checkpoint;
mod overflow;
mod root;
mod row_block;
mod writer;

pub(crate) use crate::bloom::block_filter::{Filter, HashedKey, key_hash};
pub(crate) use aside::Aside;
pub(crate) use cursor::{CheckpointCursor, OverflowReads, WalkReads, choose_read_ahead};
pub(crate) use index_block::IndexBlock;
pub(crate) use merged_row::{MergedRow, RowOverflow};
pub(crate) use open_checkpoint::{Caching, Checkpoint, Probe};
pub(crate) use overflow::{OVERFLOW_SIZE_BYTES_MIN, OverflowPlace, StoredOverflow};
pub(crate) use root::Root;
pub(crate) use row_block::RowBlock;
pub(crate) use writer::{CheckpointWriter, Finished};
