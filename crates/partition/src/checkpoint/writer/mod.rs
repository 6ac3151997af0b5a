//! Writing a checkpoint: rows in key order become row blocks, parts and a root in the row data stream. Long
//! overflows are appended first; their rows wait until it is known where they are.
//!
//! What always holds: a block is appended before anything that refers to it, and nothing refers to the root
//! until the metadata stream does. A checkpoint that was cut off leaves orphaned bytes.

mod waiting;

use super::damage::damaged_row;
use super::index_block::{self, IndexEntry};
use super::merged_row::{MergedRow, RowOverflow};
use super::overflow::{OverflowPlace, StoredOverflow};
use super::root::{Part, Root};
use super::row_block::{ROW_BLOCK_SIZE_BYTES, RowBlockBuilder};
use crate::blob_data::data_writer::{DataWriter, UnderWay};
use crate::bloom::block_filter::{self as filter, key_hash};
use crate::bloom::key_groups::MEMBER_KEY_COUNT_MAX;
use crate::error::PartitionError;
use crate::operation::RowVersion;
use base::give_way;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::{BLOCK_HEADER_SIZE, ExtentId, Location, OwnerEpoch, StreamName, Streams};
use waiting::{Placed, Waiting, WaitingOverflow};

/// Row blocks are appended in batches of about this many bytes, and of no more than a part of an extent: a
/// batch that is begun goes into one extent, however full that is, and a full disk has room for steps of an
/// extent.
const BATCH_SIZE_BYTES: usize = 4 << 20;
const BATCHES_OF_EXTENT: u64 = 4;
/// Row blocks that one part covers at most.
const PART_BLOCK_COUNT_MAX: usize = 1024;
/// Keys that one part's filter covers at most.
const PART_KEY_COUNT_MAX: usize = 64 << 10;

/// Writes one checkpoint. 12 fields or more because one pass keeps the unfinished state of three appends
/// (overflows, row blocks, the part's index and filter), and each row moves through all of them in order.
pub(crate) struct CheckpointWriter {
    streams: Arc<Streams>,
    stream: StreamName,
    epoch: OwnerEpoch,
    /// Extents that the stream lists already, with overflows that stay where they are.
    left: Arc<BTreeSet<ExtentId>>,
    /// So many overflows are kept as they are before one is compressed again.
    not_tried: u32,
    /// Rows that wait for the append of overflows, theirs or those of rows before them.
    waiting: Waiting,
    /// Rows whose overflows' append is under way.
    overflow_under_way: Option<Placed>,
    block: RowBlockBuilder,
    /// Bytes of the overflows of the rows in it, as they are stored.
    block_overflow_bytes: u64,
    /// Finished row blocks that wait for their append.
    batch: Vec<(BlockFacts, Bytes)>,
    batch_bytes: usize,
    batch_size_bytes: usize,
    /// Appends row blocks while others are made; without it the walk waits for each append.
    beside: Option<Arc<DataWriter>>,
    /// Row blocks whose append is under way.
    under_way: Option<(Vec<BlockFacts>, UnderWay)>,
    index: Vec<IndexEntry>,
    /// Of the keys of the whole checkpoint, as long as they are few enough for a group, and of its last part.
    hashes: Vec<u64>,
    /// Where the last part's begin.
    part_hashes_start: usize,
    root: Root,
    /// Row blocks before it gives way again, and between two times that it does.
    stride_left: u32,
    stride: u32,
    /// Bytes of overflows since it last counted as many as a row block has.
    uncounted_bytes: usize,
}

/// What the index holds of a row block besides its place.
struct BlockFacts {
    last_key: Bytes,
    overflow_size_bytes: u64,
}

/// A checkpoint that was written.
pub(crate) struct Finished {
    pub(crate) root: Location,
    /// Of all its keys, unless they are too many for a group.
    pub(crate) hashes: Option<Vec<u64>>,
}

impl CheckpointWriter {
    /// A checkpoint in `stream`, which is there and lists the extents in which overflows are `left`.
    /// `with_overflow`: rows may have some. With a writer `beside`, row blocks are made while others are
    /// appended.
    pub(crate) fn new(
        streams: Arc<Streams>,
        stream: StreamName,
        epoch: OwnerEpoch,
        left: Arc<BTreeSet<ExtentId>>,
        with_overflow: bool,
        beside: Option<Arc<DataWriter>>,
    ) -> Self {
        let of_extent = usize::try_from(streams.extent_size_bytes_max() / BATCHES_OF_EXTENT);
        CheckpointWriter {
            batch_size_bytes: of_extent.unwrap_or(usize::MAX).clamp(ROW_BLOCK_SIZE_BYTES, BATCH_SIZE_BYTES),
            streams,
            stream,
            epoch,
            left,
            not_tried: 0,
            waiting: Waiting::default(),
            overflow_under_way: None,
            block: RowBlockBuilder::new(with_overflow),
            block_overflow_bytes: 0,
            batch: Vec::new(),
            batch_bytes: 0,
            beside,
            under_way: None,
            index: Vec::new(),
            hashes: Vec::new(),
            part_hashes_start: 0,
            root: Root { lowest_version: u64::MAX, ..Root::default() },
            stride_left: 1,
            stride: 1,
            uncounted_bytes: 0,
        }
    }

    /// Gives way to requests after each so many row blocks from now on, not after each one.
    pub(crate) fn give_way_after(&mut self, block_count: u32) {
        self.stride = block_count;
        self.stride_left = self.stride_left.min(block_count);
    }

    /// Adds a row, whose overflow is at hand if it is kept apart; keys rise from call to call.
    pub(crate) async fn add(&mut self, row: MergedRow<'_>) -> Result<(), PartitionError> {
        if self.root.row_count == 0 {
            self.root.first_key = Bytes::copy_from_slice(row.key);
        }
        self.root.row_count += 1;
        self.root.deleted_count += u64::from(row.value.is_none());
        self.root.row_bytes += row.size_bytes();
        self.root.lowest_version = self.root.lowest_version.min(row.version.0);
        self.root.highest_version = self.root.highest_version.max(row.version.0);
        let stored = match row.overflow {
            RowOverflow::InValue | RowOverflow::Stored(_) => None,
            RowOverflow::InMemory(overflow) => Some(StoredOverflow::of(overflow, &mut self.not_tried)),
            RowOverflow::Read(overflow) => Some(overflow.clone()),
        };
        let left = match row.overflow {
            RowOverflow::Stored(place) if self.left.contains(&place.location.extent) => Some(place),
            RowOverflow::Stored(_) => return Err(damaged_row("its overflow was not read")),
            _ => None,
        };
        self.root.stored_bytes += left.map_or(0, OverflowPlace::stored_size_bytes);
        if stored.is_none() && self.waiting.is_empty() && self.overflow_under_way.is_none() {
            return self.add_to_block(row.key, row.version, row.value, left).await;
        }
        self.uncounted_bytes += stored.as_ref().map_or(0, |overflow| overflow.size_bytes as usize);
        self.waiting.add(row.key, row.version, row.value, stored, left);
        if self.waiting.size_bytes() >= self.batch_size_bytes {
            self.append_overflows().await?;
        }
        if self.uncounted_bytes >= ROW_BLOCK_SIZE_BYTES {
            self.uncounted_bytes = 0;
            self.count_for_stride().await;
        }
        Ok(())
    }

    async fn add_to_block(
        &mut self,
        key: &[u8],
        version: RowVersion,
        value: Option<&[u8]>,
        overflow: Option<OverflowPlace>,
    ) -> Result<(), PartitionError> {
        self.hashes.push(key_hash(key));
        self.block.add(key, version, value, overflow);
        self.block_overflow_bytes += overflow.map_or(0, OverflowPlace::stored_size_bytes);
        if self.block.size_bytes() >= ROW_BLOCK_SIZE_BYTES {
            self.finish_block();
            let under_way = self.under_way.as_ref().map_or(0, |(facts, _)| facts.len());
            let covered = self.index.len() + under_way + self.batch.len();
            let part_keys = self.hashes.len() - self.part_hashes_start;
            if covered >= PART_BLOCK_COUNT_MAX || part_keys >= PART_KEY_COUNT_MAX {
                self.finish_part().await?;
            } else if self.batch_bytes >= self.batch_size_bytes {
                self.append_batch().await?;
            }
            self.count_for_stride().await;
        }
        Ok(())
    }

    /// A row block's worth of bytes was taken: gives way if it is time.
    async fn count_for_stride(&mut self) {
        self.stride_left = self.stride_left.saturating_sub(1);
        if self.stride_left == 0 {
            self.stride_left = self.stride;
            give_way().await;
        }
    }

    /// Appends what is left and the root. `None` if there was no row.
    pub(crate) async fn finish(&mut self) -> Result<Option<Finished>, PartitionError> {
        if self.root.row_count == 0 {
            return Ok(None);
        }
        if !self.waiting.is_empty() {
            self.append_overflows().await?;
        }
        self.settle_overflow().await?;
        if self.block.size_bytes() > 0 {
            self.finish_block();
        }
        if !self.batch.is_empty() || self.under_way.is_some() || !self.index.is_empty() {
            self.finish_part().await?;
        }
        let root = self.root.encode();
        let location = self.streams.append(&self.stream, self.epoch, vec![root]).await?[0];
        let is_whole = self.hashes.len() as u64 == self.root.row_count;
        let hashes = std::mem::take(&mut self.hashes);
        Ok(Some(Finished { root: location, hashes: is_whole.then_some(hashes) }))
    }

    /// Waits until nothing is appended any more, whatever comes of it: to be called before what was written
    /// is discarded.
    pub(crate) async fn give_up(mut self) {
        let rows = self.under_way.take().map(|(_, under_way)| under_way);
        let overflows = self.overflow_under_way.take().map(|placed| placed.places);
        for under_way in rows.into_iter().chain(overflows) {
            let _ = under_way.outcome().await;
        }
    }

    /// Begins to append the overflows that wait, once those before them are there.
    async fn append_overflows(&mut self) -> Result<(), PartitionError> {
        self.settle_overflow().await?;
        let (blocks, rows) = self.waiting.take();
        let has_overflow = !blocks.is_empty();
        self.root.stored_bytes += size_bytes_of(&blocks);
        let places = match &self.beside {
            // Rows behind those with overflows.
            _ if !has_overflow => UnderWay::ended(Vec::new()),
            None => UnderWay::ended(self.streams.append(&self.stream, self.epoch, blocks).await?),
            Some(beside) => beside.begin_append(&self.stream, self.epoch, blocks).await?,
        };
        self.overflow_under_way = Some(Placed { rows, places });
        if self.beside.is_none() || !has_overflow {
            self.settle_overflow().await?;
        }
        Ok(())
    }

    /// Waits for the append of overflows that is under way; their rows come into blocks.
    async fn settle_overflow(&mut self) -> Result<(), PartitionError> {
        let Some(Placed { rows, places }) = self.overflow_under_way.take() else { return Ok(()) };
        let mut places = places.outcome().await?.into_iter();
        for row in rows.iter() {
            let overflow = match row.overflow {
                WaitingOverflow::None => None,
                WaitingOverflow::Left(place) => Some(place),
                WaitingOverflow::Appended { size_bytes } => {
                    let location = places.next().ok_or_else(|| damaged_row("its overflow has no place"))?;
                    Some(OverflowPlace { location, size_bytes })
                }
            };
            self.add_to_block(row.key, row.version, row.value, overflow).await?;
        }
        self.waiting.reuse(rows);
        Ok(())
    }

    fn finish_block(&mut self) {
        let last_key = Bytes::copy_from_slice(self.block.last_key());
        let block = self.block.finish();
        self.batch_bytes += block.len();
        let overflow_size_bytes = std::mem::take(&mut self.block_overflow_bytes);
        self.batch.push((BlockFacts { last_key, overflow_size_bytes }, block));
    }

    async fn append_batch(&mut self) -> Result<(), PartitionError> {
        let (facts, blocks): (Vec<_>, Vec<_>) = std::mem::take(&mut self.batch).into_iter().unzip();
        self.batch_bytes = 0;
        self.settle_append().await?;
        match &self.beside {
            None => {
                let locations = self.append(blocks).await?;
                self.note_appended(facts, locations);
            }
            Some(beside) => {
                self.root.stored_bytes += size_bytes_of(&blocks);
                let under_way = beside.begin_append(&self.stream, self.epoch, blocks).await?;
                self.under_way = Some((facts, under_way));
            }
        }
        Ok(())
    }

    /// Waits for the append that is under way.
    async fn settle_append(&mut self) -> Result<(), PartitionError> {
        if let Some((facts, under_way)) = self.under_way.take() {
            let locations = under_way.outcome().await?;
            self.note_appended(facts, locations);
        }
        Ok(())
    }

    /// Row blocks of which this is known are at these locations.
    fn note_appended(&mut self, facts: Vec<BlockFacts>, locations: Vec<Location>) {
        let entries = facts.into_iter().zip(locations).map(|(facts, location)| {
            let BlockFacts { last_key, overflow_size_bytes } = facts;
            IndexEntry { last_key, location, overflow_size_bytes }
        });
        self.index.extend(entries);
    }

    async fn finish_part(&mut self) -> Result<(), PartitionError> {
        if !self.batch.is_empty() {
            self.append_batch().await?;
        }
        self.settle_append().await?;
        let Some(last) = self.index.last() else { return Ok(()) };
        let last_key = last.last_key.clone();
        let hashes = &self.hashes[self.part_hashes_start..];
        let blocks = vec![index_block::build(&self.index), filter::build(hashes)];
        self.index.clear();
        if self.hashes.len() > MEMBER_KEY_COUNT_MAX {
            self.hashes.clear();
        }
        self.part_hashes_start = self.hashes.len();
        let locations = self.append(blocks).await?;
        self.root.parts.push(Part { last_key, index: locations[0], filter: locations[1] });
        Ok(())
    }

    async fn append(&mut self, blocks: Vec<Bytes>) -> Result<Vec<Location>, PartitionError> {
        self.root.stored_bytes += size_bytes_of(&blocks);
        Ok(self.streams.append(&self.stream, self.epoch, blocks).await?)
    }
}

fn size_bytes_of(blocks: &[Bytes]) -> u64 {
    blocks.iter().map(|block| (BLOCK_HEADER_SIZE + block.len()) as u64).sum()
}
