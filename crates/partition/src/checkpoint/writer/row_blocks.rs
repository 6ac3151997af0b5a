//! Row blocks on their way into a checkpoint: the one that is being made, those that wait for their append,
//! those whose append is under way.
//!
//! What always holds: they keep the order of their rows, and what the index will say of each goes with it.

use crate::blob_data::data_writer::UnderWay;
use crate::checkpoint::overflow::OverflowPlace;
use crate::checkpoint::row_block::{ROW_BLOCK_SIZE_BYTES, RowBlockBuilder};
use crate::operation::RowVersion;
use bytes::Bytes;

/// What the index holds of a row block besides its place.
pub(super) struct BlockFacts {
    pub(super) last_key: Bytes,
    pub(super) overflow_size_bytes: u64,
}

/// Row blocks that have no place yet.
pub(super) struct RowBlocks {
    block: RowBlockBuilder,
    /// Bytes of the overflows of the rows in it, as they are stored.
    block_overflow_bytes: u64,
    /// Finished row blocks that wait for their append.
    batch: Vec<(BlockFacts, Bytes)>,
    batch_bytes: usize,
    /// Row blocks whose append is under way.
    pub(super) under_way: Option<(Vec<BlockFacts>, UnderWay)>,
}

impl RowBlocks {
    /// `with_overflow`: rows may have overflows.
    pub(super) fn new(with_overflow: bool) -> Self {
        RowBlocks {
            block: RowBlockBuilder::new(with_overflow),
            block_overflow_bytes: 0,
            batch: Vec::new(),
            batch_bytes: 0,
            under_way: None,
        }
    }

    /// Adds a row. True: the block is full with it, and finished.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        version: RowVersion,
        value: Option<&[u8]>,
        overflow: Option<OverflowPlace>,
    ) -> bool {
        self.block.add(key, version, value, overflow);
        self.block_overflow_bytes += overflow.map_or(0, OverflowPlace::stored_size_bytes);
        let is_full = self.block.size_bytes() >= ROW_BLOCK_SIZE_BYTES;
        if is_full {
            self.finish_block();
        }
        is_full
    }

    /// Finishes the block that is being made, unless it has no row.
    pub(super) fn finish_last(&mut self) {
        if self.block.size_bytes() > 0 {
            self.finish_block();
        }
    }

    fn finish_block(&mut self) {
        let last_key = Bytes::copy_from_slice(self.block.last_key());
        let block = self.block.finish();
        self.batch_bytes += block.len();
        let overflow_size_bytes = std::mem::take(&mut self.block_overflow_bytes);
        self.batch.push((BlockFacts { last_key, overflow_size_bytes }, block));
    }

    /// How many are finished.
    pub(super) fn count(&self) -> usize {
        self.under_way.as_ref().map_or(0, |(facts, _)| facts.len()) + self.batch.len()
    }

    /// Whether some wait for their append.
    pub(super) fn has_batch(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Bytes of those that wait for their append.
    pub(super) fn batch_bytes(&self) -> usize {
        self.batch_bytes
    }

    /// Those that wait for their append; none wait any more.
    pub(super) fn take_batch(&mut self) -> (Vec<BlockFacts>, Vec<Bytes>) {
        self.batch_bytes = 0;
        std::mem::take(&mut self.batch).into_iter().unzip()
    }
}
