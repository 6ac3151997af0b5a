//! A checkpoint that is open for reading: what it holds in memory, look-ups, and reads of its blocks.
//!
//! What always holds: a block is parsed before it is used, and damage of it is an error with its place; a
//! filter that is not at hand never denies a key.

use super::abbreviated_keys::AbbreviatedKeys;
use super::aside::Aside;
use super::damage::damaged;
use super::index_block::{IndexBlock, IndexEntry};
use super::overflow::{OverflowPlace, StoredOverflow};
use super::root::Root;
use super::row_block::{FoundRow, RowBlock};
use crate::bloom::block_filter::{Filter, FilterLine, HashedKey};
use crate::bloom::key_filter::KeyLine;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::operation::{RowPart, RowVersion};
use crate::tree::block_cache::{BlockCache, CachedBlock, CountedRows, HeldBlock};
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use stream::{Location, Streams};

/// A checkpoint, open for reading.
pub(crate) struct Checkpoint {
    pub(crate) root: Root,
    /// Of the last keys of the root's parts.
    part_heads: Arc<AbbreviatedKeys>,
    /// For each part of the root.
    held: Arc<[HeldPart]>,
    /// Its rows, once however often it is reopened.
    counted: Arc<CountedRows>,
    streams: Arc<Streams>,
    cache: Arc<BlockCache>,
}

/// What a checkpoint holds of one part, once it was asked for and found room.
#[derive(Default)]
struct HeldPart {
    filter: OnceLock<HeldBlock<Filter>>,
    index: OnceLock<HeldBlock<Arc<IndexBlock>>>,
}

/// What a checkpoint that is asked for a key knows at once.
#[derive(Clone, Copy)]
pub(crate) enum Probe<'a> {
    /// All its keys are before that one.
    Absent,
    /// The line of the filter decides.
    Held(&'a FilterLine),
    /// The line of its group's filter decides.
    Group(&'a KeyLine),
    /// Its filter is not at hand.
    Unknown,
}

impl Probe<'_> {
    /// Any byte of the line, to have it fetched.
    pub(crate) fn touch(&self) -> u64 {
        match self {
            Probe::Held(line) => line.touch().into(),
            Probe::Group(line) => line.touch(),
            Probe::Absent | Probe::Unknown => 0,
        }
    }

    /// False: not the key with this hash, for certain.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        match self {
            Probe::Absent => false,
            Probe::Held(line) => line.may_contain(hash),
            Probe::Group(line) => line.may_contain(hash),
            Probe::Unknown => true,
        }
    }
}

/// Whether a read leaves its blocks in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Reads of requests.
    Keep,
    /// Merges and full walks.
    Bypass,
}

/// A row as a checkpoint holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRow {
    pub(crate) version: RowVersion,
    /// `None`: the row was deleted.
    pub(crate) value: Option<Bytes>,
}

impl Checkpoint {
    /// Reads the root at `location`.
    pub(crate) async fn open(
        streams: Arc<Streams>,
        cache: Arc<BlockCache>,
        location: Location,
    ) -> Result<Self, PartitionError> {
        let payload = streams.read(location).await?;
        let root = Root::decode(&payload).map_err(|error| damaged(location, &error.to_string()))?;
        let held = root.parts.iter().map(|_| HeldPart::default()).collect();
        let part_heads = Arc::new(AbbreviatedKeys::of(root.parts.len(), |at| &root.parts[at].last_key));
        let counted = Arc::new(cache.count_rows(root.row_count));
        Ok(Checkpoint { root, part_heads, held, counted, streams, cache })
    }

    /// The same checkpoint for another range: a wait for readers of one does not include for those of the
    /// other.
    pub(crate) fn reopened(&self) -> Self {
        Checkpoint {
            root: self.root.clone(),
            part_heads: self.part_heads.clone(),
            held: self.held.clone(),
            counted: self.counted.clone(),
            streams: self.streams.clone(),
            cache: self.cache.clone(),
        }
    }

    /// The row with this key, if the checkpoint knows it. With `aside` for an operation.
    pub(crate) async fn get(
        &self,
        key: HashedKey<'_>,
        part: RowPart,
        aside: Option<&mut Aside>,
    ) -> Result<Option<StoredRow>, PartitionError> {
        let at = self.part_of(key.bytes);
        if at == self.root.parts.len() || !self.held_filter(at).await?.may_contain(key.hash) {
            return Ok(None);
        }
        let index = self.held_index(at).await?;
        let Some(entry) = index.entries.get(index.first_at_or_after(key.bytes)) else { return Ok(None) };
        // What is read for an operation is not left to others: it may be about to change the row.
        let caching = if aside.is_some() { Caching::Bypass } else { Caching::Keep };
        let rows = self.rows(entry.location, aside).await?;
        let found = rows.find(key.bytes).map_err(|error| damaged(entry.location, &error.to_string()))?;
        let Some(FoundRow { version, mut value, overflow }) = found else { return Ok(None) };
        if part == RowPart::Whole
            && let Some((head, overflow)) = value.as_mut().zip(overflow)
        {
            let overflow = self.overflow(overflow, caching).await?;
            *head = [&head[..], &overflow].concat().into();
        }
        Ok(Some(StoredRow { version, value }))
    }

    /// The overflow at a place.
    pub(super) async fn overflow(
        &self,
        place: OverflowPlace,
        caching: Caching,
    ) -> Result<Bytes, PartitionError> {
        if let Some(CachedBlock::Overflow(overflow)) = self.cache.find(place.location) {
            return Ok(overflow);
        }
        let stored = StoredOverflow::at(place, place.location, self.read_block(place.location).await?);
        let overflow = stored.unpacked().map_err(|error| damaged(place.location, &error.to_string()))?;
        if caching == Caching::Keep {
            self.cache.insert(place.location, CachedBlock::Overflow(overflow.clone()));
        }
        Ok(overflow)
    }

    /// The overflows at these places as they are stored, past the cache.
    pub(super) async fn read_overflows(
        &self,
        places: &[OverflowPlace],
    ) -> Result<Vec<StoredOverflow>, PartitionError> {
        // Those of neighbours in one extent follow one another there, but neighbours may lie in several
        // extents.
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|at| (places[*at].location.extent, places[*at].location.offset));
        let mut overflows = Vec::new();
        overflows.resize_with(places.len(), || None);
        let follows = |last: &usize, next: &usize| {
            let (last, next) = (places[*last].location, places[*next].location);
            last.extent == next.extent && last.end() == next.offset
        };
        for run in order.chunk_by(follows) {
            let locations: Vec<Location> = run.iter().map(|at| places[*at].location).collect();
            let payloads = self.read_run(&locations).await?;
            for (at, payload) in run.iter().zip(payloads) {
                overflows[*at] = Some(StoredOverflow::at(places[*at], locations[0], payload));
            }
        }
        let missing = |place: &OverflowPlace| damaged(place.location, "nothing was read");
        overflows
            .into_iter()
            .zip(places)
            .map(|(overflow, place)| overflow.ok_or_else(|| missing(place)))
            .collect()
    }

    /// Whether the key's row may be here, as far as that is known without a read and without the cache's
    /// lock.
    pub(crate) fn probe(&self, key: HashedKey<'_>) -> Probe<'_> {
        match self.held.get(self.part_of(key.bytes)) {
            None => Probe::Absent,
            Some(part) => {
                part.filter.get().map_or(Probe::Unknown, |filter| Probe::Held(filter.line(key.hash)))
            }
        }
    }

    /// The number of the first part that can hold `key` or keys after it; the count of parts if none can.
    pub(super) fn part_of(&self, key: &[u8]) -> usize {
        self.part_heads.count_below(key, |at| &self.root.parts[at].last_key)
    }

    /// Last key and bytes of each row block that holds rows of `range`, roughly: the blocks at its ends may
    /// be counted for a neighbour.
    pub(crate) async fn blocks_in(&self, range: &KeyRange) -> Result<Vec<(Bytes, u64)>, PartitionError> {
        let mut blocks = Vec::new();
        for part in self.parts_in(range) {
            blocks.extend(self.blocks_of_part(part, range).await?);
        }
        Ok(blocks)
    }

    /// The numbers of the parts that can hold rows of `range`.
    pub(crate) fn parts_in(&self, range: &KeyRange) -> Range<usize> {
        let parts = &self.root.parts;
        let first = parts.partition_point(|part| part.last_key < range.start);
        let end = range
            .end
            .as_ref()
            .map_or(parts.len(), |end| parts.partition_point(|part| part.last_key < *end) + 1);
        first..end.min(parts.len())
    }

    /// The same of one part.
    pub(crate) async fn blocks_of_part(
        &self,
        at: usize,
        range: &KeyRange,
    ) -> Result<Vec<(Bytes, u64)>, PartitionError> {
        let index = self.index(at).await?;
        let inside = index.entries.iter().filter(|entry| range.contains(&entry.last_key));
        let bytes_of = |entry: &IndexEntry| u64::from(entry.location.len) + entry.overflow_size_bytes;
        Ok(inside.map(|entry| (entry.last_key.clone(), bytes_of(entry))).collect())
    }

    /// Where the last block that can hold keys of `range` begins: right behind the last key of a block, and
    /// before the end of `range`, so that of this checkpoint the rows from there to that end are those of one
    /// block at most. `None`: in its first block, or it has none. Reads nothing that no row of `range` needs:
    /// extents of rows before it may be gone.
    pub(crate) async fn start_of_last_block(
        &self,
        range: &KeyRange,
    ) -> Result<Option<Bytes>, PartitionError> {
        if *self.root.last_key() < *range.start {
            return Ok(None);
        }
        let successor = |key: &[u8]| Bytes::from([key, &[0]].concat());
        let last = successor(self.root.last_key());
        let end = range.end.as_deref().map_or(&last[..], |end| end.min(&last[..]));
        let ends_before = |key: &[u8]| key.iter().chain(&[0]).lt(end);
        let parts = &self.root.parts;
        let at = parts.partition_point(|part| ends_before(&part.last_key));
        if at < parts.len() {
            let index = self.index(at).await?;
            let block = index.entries.partition_point(|entry| ends_before(&entry.last_key));
            if let Some(before) = block.checked_sub(1) {
                return Ok(Some(successor(&index.entries[before].last_key)));
            }
        }
        Ok(at.checked_sub(1).map(|before| successor(&parts[before].last_key)))
    }

    /// Bytes of the overflows of its rows from `start` on, as they are stored.
    pub(crate) async fn overflow_size_bytes(&self, start: &[u8]) -> Result<u64, PartitionError> {
        let mut size_bytes = 0;
        for at in self.part_of(start)..self.root.parts.len() {
            let index = self.index(at).await?;
            let entries = &index.entries[index.first_at_or_after(start)..];
            size_bytes += entries.iter().map(|entry| entry.overflow_size_bytes).sum::<u64>();
        }
        Ok(size_bytes)
    }

    /// The filter of the part numbered `at`, held from now on if there is room.
    pub(super) async fn held_filter(&self, at: usize) -> Result<Cow<'_, Filter>, PartitionError> {
        let slot = &self.held[at].filter;
        if let Some(held) = slot.get() {
            return Ok(Cow::Borrowed(held));
        }
        let held = self.cache.hold_filter(self.filter(at).await?);
        Ok(self.keep(slot, self.root.parts[at].filter, held))
    }

    /// The index block of the part numbered `at`, held from now on if there is room.
    async fn held_index(&self, at: usize) -> Result<Cow<'_, Arc<IndexBlock>>, PartitionError> {
        let slot = &self.held[at].index;
        if let Some(held) = slot.get() {
            return Ok(Cow::Borrowed(held));
        }
        let held = self.cache.hold_index(self.index(at).await?);
        Ok(self.keep(slot, self.root.parts[at].index, held))
    }

    /// Keeps a block in its slot if there was room to hold it; else it stays in the cache.
    fn keep<'a, T: Clone>(
        &self,
        slot: &'a OnceLock<HeldBlock<T>>,
        location: Location,
        held: Result<HeldBlock<T>, T>,
    ) -> Cow<'a, T> {
        match held {
            Ok(held) => {
                self.cache.remove(location);
                Cow::Borrowed(slot.get_or_init(|| held))
            }
            Err(block) => Cow::Owned(block),
        }
    }

    /// The filter of the part numbered `at`.
    pub(super) async fn filter(&self, at: usize) -> Result<Filter, PartitionError> {
        if let Some(held) = self.held[at].filter.get() {
            return Ok(Filter::clone(held));
        }
        let location = self.root.parts[at].filter;
        if let Some(CachedBlock::Filter(filter)) = self.cache.find(location) {
            return Ok(filter);
        }
        let payload = self.read_block(location).await?;
        let filter = Filter::parse(payload).map_err(|error| damaged(location, &error.to_string()))?;
        self.cache.insert(location, CachedBlock::Filter(filter.clone()));
        Ok(filter)
    }

    /// The index block of the part numbered `at`. Walks are not what it is held for: one over everything
    /// would leave no room for look-ups.
    pub(crate) async fn index(&self, at: usize) -> Result<Arc<IndexBlock>, PartitionError> {
        if let Some(held) = self.held[at].index.get() {
            return Ok(Arc::clone(held));
        }
        let location = self.root.parts[at].index;
        if let Some(CachedBlock::Index(index)) = self.cache.find(location) {
            return Ok(index);
        }
        let payload = self.read_block(location).await?;
        let index = IndexBlock::parse(&payload).map_err(|error| damaged(location, &error.to_string()))?;
        let index = Arc::new(index);
        self.cache.insert(location, CachedBlock::Index(index.clone()));
        Ok(index)
    }

    /// A row block, which is in the cache from then on, or laid aside if it has few rows and there is an
    /// `aside`.
    pub(super) async fn rows(
        &self,
        location: Location,
        aside: Option<&mut Aside>,
    ) -> Result<RowBlock, PartitionError> {
        if let Some(CachedBlock::Rows(rows)) = self.cache.find(location) {
            return Ok(rows);
        }
        if let Some(rows) = aside.as_ref().and_then(|aside| aside.find(location)) {
            return Ok(rows);
        }
        self.cache.note_row_block_read();
        let rows = self.read_rows(location).await?;
        match aside {
            Some(aside) if !rows.has_many_rows() => aside.lay(location, rows.clone()),
            _ => self.cache.insert(location, CachedBlock::Rows(rows.clone())),
        }
        Ok(rows)
    }

    /// Reads a row block past the cache.
    pub(super) async fn read_rows(&self, location: Location) -> Result<RowBlock, PartitionError> {
        parse_rows(self.read_block(location).await?, location)
    }

    /// Reads a block. In a box: most look-ups read none, and each request would have room for it.
    async fn read_block(&self, location: Location) -> Result<Bytes, PartitionError> {
        Ok(Box::pin(self.cache.wait_for(self.streams.read(location))).await?)
    }

    /// Reads row blocks that follow one another, as stored, for walks that would only push out of memory what
    /// others need.
    pub(super) async fn read_run(&self, run: &[Location]) -> Result<Vec<Bytes>, PartitionError> {
        Ok(self.streams.read_run(run).await?)
    }
}

/// The rows of a block that was read.
pub(super) fn parse_rows(payload: Bytes, location: Location) -> Result<RowBlock, PartitionError> {
    RowBlock::parse(payload).map_err(|error| damaged(location, &error.to_string()))
}
