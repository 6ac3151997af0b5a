//! The one cache of the process for what checkpoints are made of: row blocks, index blocks and filters,
//! decoded, under one byte budget.
//!
//! A part of the budget is for filters, index blocks and keys of groups that their checkpoints hold
//! themselves, first come, first served: each look-up probes every filter of a range, and a look into a cache
//! that all threads share costs more than the filter. What finds no room there is cached like row blocks.
//!
//! What always holds: a cached block is what its location holds for ever, because extents never change.
//! Blocks of extents that nothing names any more are evicted when their checkpoint is removed.

use crate::bloom::block_filter::choose_bits_per_key;
use crate::bloom::key_groups::KeyGroup;
use crate::checkpoint::{Filter, IndexBlock, RowBlock};
use base::metrics::Histogram;
use base::{Clock, FixedHasher};
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::{ExtentId, Location};

/// Bytes that an entry costs besides its block, roughly.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// A cache that is limited keeps this part of what it was made for, of what checkpoints do not hold. It
/// remembers keys that it has evicted, to keep what comes again, in a number that is scaled with its
/// capacity: with a capacity of 0 it would remember none from then on.
const CACHED_LEAST_DIVISOR: u64 = 16;
/// What the cache expects a block to take, to size its tables.
const TYPICAL_BLOCK_SIZE_BYTES: u64 = 32 << 10;

/// The share of the budget for what checkpoints hold. Of 128 MiB this is enough for the filters of some 10 GB
/// of 1 KiB rows, those included that a merge of half of them is writing. A filter without room costs each
/// look-up more than a row block does that was pushed out.
const HELD_SHARE_PERCENT: u64 = 40;

/// Filters that compactions write should take so much of it, those of all rows together: the rest is for rows
/// that come until the next compaction, for index blocks, and for filters that were written before.
const FILTERS_AIM_PERCENT: u64 = 60;

/// The share of that which index blocks may fill. Each look-up probes every filter, but the index only where
/// a filter says that the row may be there; index blocks are the larger ones, and first come they would leave
/// filters no room.
const HELD_INDEX_SHARE_PERCENT: u64 = 40;

/// The share of it which groups' keys may fill: they save looks into filters that are there anyway.
const HELD_GROUP_SHARE_PERCENT: u64 = 25;

/// A decoded block.
#[derive(Clone)]
pub(crate) enum CachedBlock {
    Rows(RowBlock),
    Overflow(Bytes),
    Index(Arc<IndexBlock>),
    Filter(Filter),
}

#[derive(Clone)]
struct BySize;

impl Weighter<(u64, u64), CachedBlock> for BySize {
    fn weight(&self, _key: &(u64, u64), block: &CachedBlock) -> u64 {
        let size = match block {
            CachedBlock::Rows(rows) => rows.size_bytes(),
            CachedBlock::Overflow(overflow) => overflow.len(),
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
    held: Arc<HeldBytes>,
    /// What the rest may take, unless it is [limited](Self::limit).
    cached_size_bytes_max: u64,
    /// Of all open checkpoints.
    row_count: Arc<AtomicU64>,
    /// Counted only where a block is read, which costs far more than the counting.
    row_blocks_read: AtomicU64,
    /// How long reads of blocks took, if somebody wants to know.
    waits: Option<(Arc<dyn Clock>, Histogram)>,
}

/// Bytes of blocks that checkpoints hold.
struct HeldBytes {
    filters_size_bytes: AtomicU64,
    indexes_size_bytes: AtomicU64,
    groups_size_bytes: AtomicU64,
    size_bytes_max: u64,
}

/// What is held.
#[derive(Clone, Copy)]
enum Kind {
    Filter,
    Index,
    Group,
}

impl HeldBytes {
    fn of(&self, kind: Kind) -> &AtomicU64 {
        match kind {
            Kind::Filter => &self.filters_size_bytes,
            Kind::Index => &self.indexes_size_bytes,
            Kind::Group => &self.groups_size_bytes,
        }
    }

    fn size_bytes(&self) -> u64 {
        [Kind::Filter, Kind::Index, Kind::Group]
            .map(|kind| self.of(kind).load(Ordering::Relaxed))
            .iter()
            .sum()
    }

    /// How much of this kind may be held now. Two that look at the same time may go beyond it by one block.
    fn size_bytes_max_of(&self, kind: Kind) -> u64 {
        let share_percent = match kind {
            Kind::Filter => 100,
            Kind::Index => HELD_INDEX_SHARE_PERCENT,
            Kind::Group => HELD_GROUP_SHARE_PERCENT,
        };
        let others = self.size_bytes().saturating_sub(self.of(kind).load(Ordering::Relaxed));
        let share = self.size_bytes_max / 100 * share_percent;
        share.min(self.size_bytes_max.saturating_sub(others))
    }
}

/// A block that its checkpoint holds; its bytes are freed when it is dropped.
pub(crate) struct HeldBlock<T> {
    block: T,
    kind: Kind,
    size_bytes: u64,
    all: Arc<HeldBytes>,
}

impl<T> Deref for HeldBlock<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.block
    }
}

impl<T> Drop for HeldBlock<T> {
    fn drop(&mut self) {
        self.all.of(self.kind).fetch_sub(self.size_bytes, Ordering::Relaxed);
    }
}

/// Rows of an open checkpoint, which count until it is dropped.
pub(crate) struct CountedRows {
    count: u64,
    all: Arc<AtomicU64>,
}

impl Drop for CountedRows {
    fn drop(&mut self) {
        self.all.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// What the cache has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Blocks found, without those that checkpoints hold themselves.
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
        let held_max = size_bytes_max / 100 * HELD_SHARE_PERCENT;
        let cached_max = size_bytes_max - held_max;
        let count = (cached_max / TYPICAL_BLOCK_SIZE_BYTES).max(16) as usize;
        let blocks =
            Cache::with(count, cached_max, BySize, FixedHasher::default(), DefaultLifecycle::default());
        let held = Arc::new(HeldBytes {
            filters_size_bytes: AtomicU64::new(0),
            indexes_size_bytes: AtomicU64::new(0),
            groups_size_bytes: AtomicU64::new(0),
            size_bytes_max: held_max,
        });
        let (row_count, row_blocks_read) = (Arc::default(), AtomicU64::new(0));
        let waits = None;
        BlockCache { blocks, held, cached_size_bytes_max: cached_max, row_count, row_blocks_read, waits }
    }

    /// Has each read of a block that is not here recorded.
    pub(crate) fn recording(self, clock: Arc<dyn Clock>, waits: Histogram) -> Self {
        BlockCache { waits: Some((clock, waits)), ..self }
    }

    /// Reads a block that is not here.
    pub(crate) async fn wait_for<T>(&self, read: impl Future<Output = T>) -> T {
        let Some((clock, waits)) = &self.waits else { return read.await };
        let began_at = clock.monotonic();
        let block = read.await;
        waits.record_duration(clock.monotonic().saturating_sub(began_at));
        block
    }

    /// Counts the rows of a checkpoint while it is open.
    pub(crate) fn count_rows(&self, count: u64) -> CountedRows {
        self.row_count.fetch_add(count, Ordering::Relaxed);
        CountedRows { count, all: self.row_count.clone() }
    }

    /// Bits of each key in the filters of a checkpoint that takes the place of others, of which so many rows
    /// are open a second time already, as its first parts.
    pub(crate) fn filter_bits_per_key(&self, written_row_count: u64) -> u64 {
        let size_bytes_max = self.held.size_bytes_max / 100 * FILTERS_AIM_PERCENT;
        let row_count = self.row_count.load(Ordering::Relaxed).saturating_sub(written_row_count);
        choose_bits_per_key(row_count, size_bytes_max)
    }

    /// Has all of it take no more than this from now on, as far as blocks that checkpoints hold leave room:
    /// these stay, and so does a [small part](CACHED_LEAST_DIVISOR) of the others. What is too much is
    /// evicted at once.
    pub(crate) fn limit(&self, size_bytes_max: u64) {
        let rest = size_bytes_max.saturating_sub(self.held.size_bytes());
        let least = self.cached_size_bytes_max / CACHED_LEAST_DIVISOR;
        self.blocks.set_capacity(rest.clamp(least, self.cached_size_bytes_max));
    }

    /// Lets a checkpoint hold a filter, if there is room for it.
    pub(crate) fn hold_filter(&self, filter: Filter) -> Result<HeldBlock<Filter>, Filter> {
        let size_bytes = filter.size_bytes();
        self.hold(filter, size_bytes, Kind::Filter)
    }

    /// Lets a checkpoint hold an index block, if there is room for it.
    pub(crate) fn hold_index(
        &self,
        index: Arc<IndexBlock>,
    ) -> Result<HeldBlock<Arc<IndexBlock>>, Arc<IndexBlock>> {
        let size_bytes = index.size_bytes();
        self.hold(index, size_bytes, Kind::Index)
    }

    /// Lets checkpoints hold the keys of their group, if there is room for them.
    pub(crate) fn hold_group(&self, group: KeyGroup) -> Option<HeldBlock<KeyGroup>> {
        let size_bytes = group.keys().size_bytes();
        self.hold(group, size_bytes, Kind::Group).ok()
    }

    /// Lets a checkpoint hold `block`, if there is room for its kind.
    fn hold<T>(&self, block: T, size_bytes: usize, kind: Kind) -> Result<HeldBlock<T>, T> {
        let size_bytes = (size_bytes + ENTRY_OVERHEAD_BYTES) as u64;
        let all = &self.held;
        let room = |held: u64| Some(held + size_bytes).filter(|sum| *sum <= all.size_bytes_max_of(kind));
        match all.of(kind).fetch_update(Ordering::Relaxed, Ordering::Relaxed, room) {
            Ok(_) => Ok(HeldBlock { block, kind, size_bytes, all: all.clone() }),
            Err(_) => Err(block),
        }
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

    /// A checkpoint holds the block at `location` now.
    pub(crate) fn remove(&self, location: Location) {
        self.blocks.remove(&(location.extent.0, location.offset));
    }

    /// Evicts what lies in these extents: nothing names them any more, and what was read of them often would
    /// stay longest.
    pub(crate) fn evict(&self, extents: &BTreeSet<ExtentId>) {
        if !extents.is_empty() {
            self.blocks.retain(|(extent, _), _| !extents.contains(&ExtentId(*extent)));
        }
    }

    /// What the cache has done so far.
    pub(crate) fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            hits: self.blocks.hits(),
            misses: self.blocks.misses(),
            row_blocks_read: self.row_blocks_read.load(Ordering::Relaxed),
            size_bytes: self.blocks.weight() + self.held.size_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_evicted_lies_in_these_extents_and_the_rest_stays() {
        let cache = BlockCache::new(1 << 20);
        let place = |extent, offset| Location { extent: ExtentId(extent), offset, len: 1 };
        let block = || CachedBlock::Overflow(Bytes::from(vec![7; 1000]));
        for extent in 1..=3 {
            (0..50).for_each(|offset| cache.insert(place(extent, offset), block()));
        }
        let all_bytes = cache.statistics().size_bytes;
        cache.evict(&BTreeSet::new());
        assert_eq!(cache.statistics().size_bytes, all_bytes);
        cache.evict(&BTreeSet::from([ExtentId(1), ExtentId(3), ExtentId(9)]));
        assert_eq!(cache.statistics().size_bytes, all_bytes / 3);
        let is_there = |extent| (0..50).all(|offset| cache.find(place(extent, offset)).is_some());
        assert!(is_there(2) && !is_there(1) && !is_there(3));
    }

    /// Where others take memory the cache makes room, and has it back afterwards.
    #[test]
    fn a_limited_cache_is_as_small_as_it_must_be_and_grows_again() {
        let cache = BlockCache::new(1 << 20);
        let place = |offset| Location { extent: ExtentId(1), offset, len: 1 };
        let fill = || {
            (0..1000)
                .for_each(|at| cache.insert(place(at), CachedBlock::Overflow(Bytes::from(vec![7; 1000]))))
        };
        let size_bytes = || cache.statistics().size_bytes;
        fill();
        let full_bytes = size_bytes();
        let held = cache.hold("a block", 50_000 - ENTRY_OVERHEAD_BYTES, Kind::Filter).ok();
        cache.limit(250_000);
        assert!((150_000..=250_000).contains(&size_bytes()), "{}", size_bytes());
        fill();
        assert!(size_bytes() <= 250_000, "{}", size_bytes());
        cache.limit(0);
        let least_bytes = 50_000 + cache.cached_size_bytes_max / CACHED_LEAST_DIVISOR;
        assert!((50_001..=least_bytes).contains(&size_bytes()), "what is held stays, and a part of the rest");
        drop(held);
        cache.limit(u64::MAX);
        fill();
        assert!(size_bytes().abs_diff(full_bytes) < full_bytes / 10, "{} of {full_bytes}", size_bytes());
    }

    #[test]
    fn checkpoints_hold_blocks_up_to_their_share_and_give_it_back() {
        use Kind::{Filter, Group, Index};
        let cache = BlockCache::new(250_000);
        let hold = |kind, size: usize| cache.hold("a block", size - ENTRY_OVERHEAD_BYTES, kind).ok();
        let held = || cache.statistics().size_bytes;
        let index = hold(Index, 30_000).expect("there is room");
        assert!(hold(Index, 11_000).is_none(), "41,000 of 40,000 bytes for index blocks");
        let group = hold(Group, 20_000).expect("there is room");
        assert!(hold(Group, 6_000).is_none(), "26,000 of 25,000 bytes for groups");
        let first = hold(Filter, 30_000).expect("there is room");
        let second = hold(Filter, 20_000).expect("filters may fill what the others leave");
        assert!(hold(Filter, 1_000).is_none(), "101,000 of 100,000 bytes");
        assert_eq!((*first, held()), ("a block", 100_000));
        assert!(hold(Group, 1_000).is_none(), "101,000 of 100,000 bytes");
        drop(index);
        assert_eq!(held(), 70_000);
        let index = hold(Index, 30_000).expect("its own bytes count, and what is left");
        assert!(hold(Index, 1_000).is_none(), "101,000 of 100,000 bytes");
        drop((first, second, index, group));
        assert_eq!(held(), 0);
    }
}
