//! The one cache of the process for what checkpoints are made of: row blocks, index blocks and filters, decoded,
//! under one byte budget.
//!
//! What always holds: a cached block is what its location holds for ever, because extents never change.

use crate::checkpoint::{Filter, IndexBlock, RowBlock};
use base::FixedHasher;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::Location;

/// Bytes that an entry costs besides its block, roughly.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// What the cache expects a block to take, to size its tables.
const TYPICAL_BLOCK_SIZE_BYTES: u64 = 32 << 10;

/// A decoded block.
#[derive(Clone)]
pub(crate) enum CachedBlock {
    Rows(RowBlock),
    Index(Arc<IndexBlock>),
    Filter(Filter),
}

#[derive(Clone)]
struct BySize;

impl Weighter<(u64, u64), CachedBlock> for BySize {
    fn weight(&self, _key: &(u64, u64), block: &CachedBlock) -> u64 {
        let size = match block {
            CachedBlock::Rows(rows) => rows.size_bytes(),
            CachedBlock::Index(index) => index.size_bytes(),
            CachedBlock::Filter(filter) => filter.size_bytes(),
        };
        (size + ENTRY_OVERHEAD_BYTES) as u64
    }
}

type BlockMap = Cache<(u64, u64), CachedBlock, BySize, FixedHasher>;

/// The cache, shared by all ranges.
pub(crate) struct BlockCache {
    blocks: BlockMap,
    /// Counted only where a block is read, which costs far more than the counting.
    row_blocks_read: AtomicU64,
}

/// What the cache has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Blocks found.
    pub hits: u64,
    /// Blocks that had to be read.
    pub misses: u64,
    /// Row blocks among them: what neither a filter nor the cache could save.
    pub row_blocks_read: u64,
    /// Bytes held.
    pub size_bytes: u64,
}

impl BlockCache {
    /// A cache of at most `size_bytes_max`.
    pub(crate) fn new(size_bytes_max: u64) -> Self {
        let count = (size_bytes_max / TYPICAL_BLOCK_SIZE_BYTES).max(16) as usize;
        let blocks =
            Cache::with(count, size_bytes_max, BySize, FixedHasher::default(), DefaultLifecycle::default());
        BlockCache { blocks, row_blocks_read: AtomicU64::new(0) }
    }

    pub(crate) fn find(&self, location: Location) -> Option<CachedBlock> {
        self.blocks.get(&(location.extent.0, location.offset))
    }

    /// A row block is read because it is not here.
    pub(crate) fn note_row_block_read(&self) {
        self.row_blocks_read.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn insert(&self, location: Location, block: CachedBlock) {
        self.blocks.insert((location.extent.0, location.offset), block);
    }

    /// What the cache has done so far.
    pub(crate) fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            hits: self.blocks.hits(),
            misses: self.blocks.misses(),
            row_blocks_read: self.row_blocks_read.load(Ordering::Relaxed),
            size_bytes: self.blocks.weight(),
        }
    }
}
