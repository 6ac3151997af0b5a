//! Writing a checkpoint: rows in key order become row blocks, parts and a root in the row data stream. Long
//! overflows are appended first; their rows wait until it is known where they are. Each row goes through
//! three stages, each with its unfinished state and its append: `overflows`, `row_blocks`, `open_part`.
//!
//! What always holds: a block is appended before anything that refers to it, and nothing refers to the root
//! until the metadata stream does. A checkpoint that was cut off leaves orphaned bytes.

mod destination;
mod open_part;
mod overflows;
mod row_blocks;
mod waiting;

use super::damage::damaged_row;
use super::merged_row::MergedRow;
use super::overflow::OverflowPlace;
use super::root::{Part, Root};
use super::row_block::ROW_BLOCK_SIZE_BYTES;
use crate::blob_data::data_writer::{DataWriter, UnderWay};
use crate::bloom::block_filter::BITS_PER_KEY_MAX;
use crate::error::PartitionError;
use crate::operation::RowVersion;
use base::give_way;
use bytes::Bytes;
use destination::Destination;
use open_part::OpenPart;
use overflows::Overflows;
use row_blocks::RowBlocks;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::{BLOCK_HEADER_SIZE, ExtentId, Location, Owner, StreamName, Streams};
use waiting::{Placed, WaitingOverflow};

/// Row blocks are appended in batches of about this many bytes, and of no more than a part of an extent: a
/// batch that is begun goes into one extent, however full that is, and a full disk has room for steps of an
/// extent.
const BATCH_SIZE_BYTES: usize = 4 << 20;
const BATCHES_OF_EXTENT: u64 = 4;

/// Writes one checkpoint.
pub(crate) struct CheckpointWriter {
    destination: Destination,
    overflows: Overflows,
    blocks: RowBlocks,
    part: OpenPart,
    root: Root,
    /// Bytes of row blocks, or of overflows, that are appended at once.
    batch_size_bytes: usize,
    /// Row blocks before it gives way again, and between two times that it does.
    stride_left: u32,
    stride: u32,
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
        owner: Owner,
        left: Arc<BTreeSet<ExtentId>>,
        with_overflow: bool,
        beside: Option<Arc<DataWriter>>,
    ) -> Self {
        let of_extent = usize::try_from(streams.extent_size_bytes_max() / BATCHES_OF_EXTENT);
        CheckpointWriter {
            batch_size_bytes: of_extent.unwrap_or(usize::MAX).clamp(ROW_BLOCK_SIZE_BYTES, BATCH_SIZE_BYTES),
            destination: Destination { streams, stream, owner, beside, extent_size_bytes: u64::MAX },
            overflows: Overflows::new(left),
            blocks: RowBlocks::new(with_overflow),
            part: OpenPart::new(BITS_PER_KEY_MAX),
            root: Root { lowest_version: u64::MAX, ..Root::default() },
            stride_left: 1,
            stride: 1,
        }
    }

    /// Filters have so many bits of each key. To be called before the first row.
    pub(crate) fn set_filter_bits(&mut self, bits_per_key: u64) {
        self.part = OpenPart::new(bits_per_key);
    }

    /// Parts have so many rows at most. To be called before the first row, and after
    /// [`Self::set_filter_bits`].
    pub(crate) fn set_part_row_count_max(&mut self, row_count_max: usize) {
        self.part.set_key_count_max(row_count_max);
    }

    /// Goes on behind the rows of an earlier checkpoint: the new one has those, too, where they are. Its
    /// stream lists their extents.
    pub(crate) fn continue_after(&mut self, before: &Root) {
        self.root = before.clone();
    }

    /// Begins another extent after each so many bytes, where nothing is appended beside the walk.
    pub(crate) fn end_extents_at(&mut self, size_bytes: u64) {
        self.destination.extent_size_bytes = size_bytes;
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
        let stored = self.overflows.stored(row.overflow);
        let left = self.overflows.left(row.overflow)?;
        self.root.stored_bytes += left.map_or(0, OverflowPlace::stored_size_bytes);
        if stored.is_none() && self.overflows.is_empty() {
            return self.add_to_block(row.key, row.version, row.value, left).await;
        }
        let overflows = &mut self.overflows;
        overflows.uncounted_bytes += stored.as_ref().map_or(0, |overflow| overflow.size_bytes as usize);
        overflows.waiting.add(row.key, row.version, row.value, stored, left);
        if overflows.waiting.size_bytes() >= self.batch_size_bytes {
            self.append_overflows().await?;
        }
        if self.overflows.uncounted_bytes >= ROW_BLOCK_SIZE_BYTES {
            self.overflows.uncounted_bytes = 0;
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
        self.part.note_key(key);
        if self.blocks.add(key, version, value, overflow) {
            if self.part.is_full_with(self.blocks.count()) {
                self.finish_part().await?;
            } else if self.blocks.batch_bytes() >= self.batch_size_bytes {
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
        if !self.overflows.waiting.is_empty() {
            self.append_overflows().await?;
        }
        self.settle_overflow().await?;
        self.blocks.finish_last();
        if self.blocks.count() > 0 || !self.part.is_empty() {
            self.finish_part().await?;
        }
        let root = self.destination.append(vec![self.root.encode()]).await?[0];
        let hashes = self.part.take_hashes(self.root.row_count);
        Ok(Some(Finished { root, hashes }))
    }

    /// Waits until nothing is appended any more, whatever comes of it: to be called before what was written
    /// is discarded.
    pub(crate) async fn give_up(mut self) {
        let rows = self.blocks.under_way.take().map(|(_, under_way)| under_way);
        let overflows = self.overflows.under_way.take().map(|placed| placed.places);
        for under_way in rows.into_iter().chain(overflows) {
            let _ = under_way.outcome().await;
        }
    }

    /// Begins to append the overflows that wait, once those before them are there.
    async fn append_overflows(&mut self) -> Result<(), PartitionError> {
        self.settle_overflow().await?;
        let (blocks, rows) = self.overflows.waiting.take();
        let has_overflow = !blocks.is_empty();
        self.root.stored_bytes += size_bytes_of(&blocks);
        let places = match has_overflow {
            true => self.destination.begin_append(blocks).await?,
            // Rows behind those with overflows.
            false => UnderWay::ended(Vec::new()),
        };
        self.overflows.under_way = Some(Placed { rows, places });
        if !self.destination.is_beside() || !has_overflow {
            self.settle_overflow().await?;
        }
        Ok(())
    }

    /// Waits for the append of overflows that is under way; their rows come into blocks.
    async fn settle_overflow(&mut self) -> Result<(), PartitionError> {
        let Some(Placed { rows, places }) = self.overflows.under_way.take() else { return Ok(()) };
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
        self.overflows.waiting.reuse(rows);
        Ok(())
    }

    /// Begins to append the row blocks that wait, once those before them are there.
    async fn append_batch(&mut self) -> Result<(), PartitionError> {
        let (facts, blocks) = self.blocks.take_batch();
        self.settle_append().await?;
        self.root.stored_bytes += size_bytes_of(&blocks);
        let under_way = self.destination.begin_append(blocks).await?;
        self.blocks.under_way = Some((facts, under_way));
        if !self.destination.is_beside() {
            self.settle_append().await?;
        }
        Ok(())
    }

    /// Waits for the append of row blocks that is under way.
    async fn settle_append(&mut self) -> Result<(), PartitionError> {
        if let Some((facts, under_way)) = self.blocks.under_way.take() {
            let locations = under_way.outcome().await?;
            self.part.note_appended(facts, locations);
        }
        Ok(())
    }

    /// Appends all row blocks, then the index and the filter of the part that they end.
    async fn finish_part(&mut self) -> Result<(), PartitionError> {
        if self.blocks.has_batch() {
            self.append_batch().await?;
        }
        self.settle_append().await?;
        let Some((last_key, blocks)) = self.part.finish() else { return Ok(()) };
        self.root.stored_bytes += size_bytes_of(&blocks);
        let locations = self.destination.append(blocks).await?;
        self.root.parts.push(Part { last_key, index: locations[0], filter: locations[1] });
        Ok(())
    }
}

fn size_bytes_of(blocks: &[Bytes]) -> u64 {
    blocks.iter().map(|block| (BLOCK_HEADER_SIZE + block.len()) as u64).sum()
}
