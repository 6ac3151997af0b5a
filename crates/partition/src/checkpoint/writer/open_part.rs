//! The part of a checkpoint that is being written: what its index and its filter will hold.
//!
//! What always holds: a part covers the row blocks that were appended since the last one, and its filter the
//! keys of all rows in them.

use super::row_blocks::BlockFacts;
use crate::bloom::block_filter::{self as filter, key_hash};
use crate::bloom::key_groups::MEMBER_KEY_COUNT_MAX;
use crate::checkpoint::index_block::{self, IndexEntry};
use bytes::Bytes;
use stream::Location;

/// Row blocks that one part covers at most.
const PART_BLOCK_COUNT_MAX: usize = 1024;
/// Keys that one part's filter covers at most, unless set otherwise.
const PART_KEY_COUNT_MAX: usize = 64 << 10;

/// A part that is not finished.
pub(super) struct OpenPart {
    filter_bits_per_key: u64,
    /// Keys that it covers at most.
    key_count_max: usize,
    /// Of row blocks that were appended.
    index: Vec<IndexEntry>,
    /// Of the keys of the whole checkpoint, as long as they are few enough for a group, and of its last part.
    hashes: Vec<u64>,
    /// Where the last part's begin.
    part_hashes_start: usize,
}

impl OpenPart {
    /// The first part, and those after it, with such filters.
    pub(super) fn new(filter_bits_per_key: u64) -> Self {
        OpenPart {
            filter_bits_per_key,
            key_count_max: PART_KEY_COUNT_MAX,
            index: Vec::new(),
            hashes: Vec::new(),
            part_hashes_start: 0,
        }
    }

    /// It and those after it cover so many keys at most.
    pub(super) fn set_key_count_max(&mut self, key_count_max: usize) {
        self.key_count_max = key_count_max;
    }

    /// A row with this key lies in it.
    pub(super) fn note_key(&mut self, key: &[u8]) {
        self.hashes.push(key_hash(key));
    }

    /// Whether it takes no more, with so many row blocks that are finished and not appended yet.
    pub(super) fn is_full_with(&self, block_count: usize) -> bool {
        let part_keys = self.hashes.len() - self.part_hashes_start;
        self.index.len() + block_count >= PART_BLOCK_COUNT_MAX || part_keys >= self.key_count_max
    }

    /// Whether none of its row blocks was appended.
    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Row blocks of which this is known are at these locations.
    pub(super) fn note_appended(&mut self, facts: Vec<BlockFacts>, locations: Vec<Location>) {
        let entries = facts.into_iter().zip(locations).map(|(facts, location)| {
            let BlockFacts { last_key, overflow_size_bytes } = facts;
            IndexEntry { last_key, location, overflow_size_bytes }
        });
        self.index.extend(entries);
    }

    /// Its last key, and the blocks of its index and its filter; the next part begins. `None`: it covers
    /// nothing.
    pub(super) fn finish(&mut self) -> Option<(Bytes, Vec<Bytes>)> {
        let last_key = self.index.last()?.last_key.clone();
        let hashes = &self.hashes[self.part_hashes_start..];
        let blocks = vec![index_block::build(&self.index), filter::build(hashes, self.filter_bits_per_key)];
        self.index.clear();
        if self.hashes.len() > MEMBER_KEY_COUNT_MAX {
            // None are kept any more but those of the part, which are few.
            self.hashes = Vec::new();
        }
        self.part_hashes_start = self.hashes.len();
        Some((last_key, blocks))
    }

    /// The hashes of all keys of a checkpoint of so many rows, unless they are too many for a group.
    pub(super) fn take_hashes(&mut self, row_count: u64) -> Option<Vec<u64>> {
        let is_whole = self.hashes.len() as u64 == row_count;
        let hashes = std::mem::take(&mut self.hashes);
        is_whole.then_some(hashes)
    }
}
