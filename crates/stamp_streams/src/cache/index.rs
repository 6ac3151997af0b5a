//! Which block is where, and which file has to go. Pure: whoever calls does what is decided here.

use crate::cache::record::Listed;
use std::collections::{BTreeMap, VecDeque};

/// Files that the bytes are spread over, so that one of them is a small part of all.
const FILES_COUNT: u64 = 32;
/// Smallest size at which a file is full.
const FILE_SIZE_BYTES_MIN: u64 = 16 << 20;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBounds {
    /// Bytes on the disk.
    pub size_bytes_max: u64,
    /// Blocks, each of which takes some 80 bytes of memory.
    pub blocks_max: usize,
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) size: u32,
}

#[derive(Debug)]
struct CacheFile {
    number: u64,
    size_bytes: u64,
    blocks: Vec<Listed>,
}

/// The blocks that are there, by files, the oldest first.
#[derive(Debug)]
pub(super) struct Index {
    bounds: CacheBounds,
    files: VecDeque<CacheFile>,
    places: BTreeMap<u64, Place>,
}

impl Index {
    pub(super) fn new(bounds: CacheBounds) -> Self {
        Index { bounds, files: VecDeque::new(), places: BTreeMap::new() }
    }

    /// Bytes at which a file is full.
    pub(super) fn file_size_bytes(&self) -> u64 {
        (self.bounds.size_bytes_max / FILES_COUNT).max(FILE_SIZE_BYTES_MIN)
    }

    pub(super) fn place(&self, hash: u64) -> Option<Place> {
        self.places.get(&hash).copied()
    }

    /// The block at this place is none.
    pub(super) fn forget(&mut self, hash: u64, place: Place) {
        if self.place(hash) == Some(place) {
            self.places.remove(&hash);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// A file that is there, newer than all others.
    pub(super) fn add_file(&mut self, number: u64, size_bytes: u64, blocks: Vec<Listed>) {
        for block in &blocks {
            let place = Place { file: number, offset: block.offset, size: block.size };
            self.places.insert(block.hash, place);
        }
        self.files.push_back(CacheFile { number, size_bytes, blocks });
    }

    /// The newest file has one more block.
    pub(super) fn add(&mut self, block: Listed) {
        let Some(file) = self.files.back_mut() else { return };
        file.size_bytes = file.size_bytes.max(block.offset + u64::from(block.size));
        file.blocks.push(block);
        self.places.insert(block.hash, Place { file: file.number, offset: block.offset, size: block.size });
    }

    /// The blocks of the newest file.
    pub(super) fn newest_blocks(&self) -> &[Listed] {
        self.files.back().map_or(&[], |file| &file.blocks)
    }

    /// Whether so many bytes more need another file.
    pub(super) fn is_full_with(&self, size_bytes: u64) -> bool {
        self.files.back().is_none_or(|file| file.size_bytes + size_bytes > self.file_size_bytes())
    }

    /// Drops the oldest files until there is room for one more file and one more block; their numbers.
    pub(super) fn make_room(&mut self) -> Vec<u64> {
        let mut dropped = Vec::new();
        let has_room = |index: &Index| {
            index.size_bytes() + index.file_size_bytes() <= index.bounds.size_bytes_max
                && index.files.iter().map(|file| file.blocks.len()).sum::<usize>() < index.bounds.blocks_max
        };
        while !has_room(self) {
            let Some(number) = self.drop_oldest() else { break };
            dropped.push(number);
        }
        dropped
    }

    /// Drops the oldest file.
    pub(super) fn drop_oldest(&mut self) -> Option<u64> {
        let file = self.files.pop_front()?;
        self.forget_blocks(&file);
        Some(file.number)
    }

    /// Drops the newest file.
    pub(super) fn drop_newest(&mut self) -> Option<u64> {
        let file = self.files.pop_back()?;
        self.forget_blocks(&file);
        Some(file.number)
    }

    fn forget_blocks(&mut self, file: &CacheFile) {
        for block in &file.blocks {
            let place = Place { file: file.number, offset: block.offset, size: block.size };
            self.forget(block.hash, place);
        }
    }

    /// Whether the number of blocks has reached its bound.
    pub(super) fn has_too_many(&self) -> bool {
        self.files.iter().map(|file| file.blocks.len()).sum::<usize>() >= self.bounds.blocks_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: CacheBounds = CacheBounds { size_bytes_max: 64 << 20, blocks_max: 5 };

    fn block(hash: u64, offset: u64) -> Listed {
        Listed { hash, offset, size: 10 }
    }

    #[test]
    fn the_oldest_files_go_with_their_blocks_when_there_is_no_room() {
        let mut index = Index::new(CacheBounds { blocks_max: usize::MAX, ..BOUNDS });
        assert_eq!(index.file_size_bytes(), 16 << 20);
        for number in 0..4 {
            assert!(index.make_room().is_empty(), "file {number}");
            index.add_file(number, 16 << 20, vec![block(number, 0)]);
        }
        assert_eq!(index.make_room(), [0]);
        assert_eq!((index.place(0), index.place(1).map(|place| place.file)), (None, Some(1)));
        assert_eq!((index.count(), index.size_bytes()), (3, 48 << 20));
    }

    #[test]
    fn a_block_that_came_again_stays_when_its_first_file_goes() {
        let mut index = Index::new(BOUNDS);
        index.add_file(1, 0, vec![block(7, 0)]);
        index.add_file(2, 0, Vec::new());
        index.add(block(7, 30));
        assert_eq!(index.drop_oldest(), Some(1));
        assert_eq!(index.place(7), Some(Place { file: 2, offset: 30, size: 10 }));
        assert_eq!((index.size_bytes(), index.newest_blocks()), (40, &[block(7, 30)][..]));
        index.forget(7, Place { file: 1, offset: 0, size: 10 });
        assert!(index.place(7).is_some(), "another place is meant");
        assert_eq!((index.drop_newest(), index.place(7), index.drop_newest()), (Some(2), None, None));
    }

    #[test]
    fn blocks_are_bounded_too() {
        let mut index = Index::new(BOUNDS);
        index.add_file(1, 0, (0..3).map(|hash| block(hash, hash * 10)).collect());
        index.add_file(2, 0, Vec::new());
        index.add(block(3, 0));
        assert!(!index.has_too_many() && index.make_room().is_empty());
        index.add(block(4, 10));
        assert!(index.has_too_many());
        assert_eq!((index.make_room(), index.count()), (vec![1], 2));
    }

    #[test]
    fn a_file_is_full_at_its_size() {
        let mut index = Index::new(BOUNDS);
        assert!(index.is_full_with(0), "there is none");
        index.add_file(1, (16 << 20) - 10, Vec::new());
        assert!(!index.is_full_with(10) && index.is_full_with(11));
    }
}
