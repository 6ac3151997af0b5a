//! Builds row blocks (see `layout.rs` for their bytes) from rows in key order.
//!
//! What always holds: a block has a row, and each of its restarts has its whole key.

use super::layout::{
    KIND_ROWS, KIND_ROWS_WITH_OVERFLOW, LZ4, RESTART_ROW_COUNT, ROW_BLOCK_SIZE_BYTES, UNCOMPRESSED,
    shared_prefix,
};
use crate::checkpoint::compression::compress_if_worth_it;
use crate::checkpoint::overflow::OverflowPlace;
use crate::operation::RowVersion;
use base::codec::Encode;
use bytes::Bytes;

/// Rows that go over that size, and the list of starts, usually take no more than this.
const ROW_BLOCK_SPARE_BYTES: usize = 2 << 10;
/// Bytes before the content, at most.
const HEADER_SIZE_MAX: usize = 1 + 1 + 10;

/// Gathers rows in key order.
#[derive(Default)]
pub(crate) struct RowBlockBuilder {
    /// Rows may have overflows.
    with_overflow: bool,
    /// Space for the header, then the rows: as they are they become the block without a copy. Empty before
    /// the first.
    out: Vec<u8>,
    restarts: Vec<u32>,
    row_count: usize,
    last_key: Vec<u8>,
    /// So many blocks are kept as they are before one is tried again.
    not_tried: u32,
}

impl RowBlockBuilder {
    /// A builder of blocks, whose rows may have overflows or not.
    pub(crate) fn new(with_overflow: bool) -> Self {
        RowBlockBuilder { with_overflow, ..Self::default() }
    }

    /// Adds a row; its overflow is not in `value`.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        version: RowVersion,
        value: Option<&[u8]>,
        overflow: Option<OverflowPlace>,
    ) {
        debug_assert!(self.with_overflow || overflow.is_none());
        if self.out.is_empty() {
            self.out.reserve(ROW_BLOCK_SIZE_BYTES + ROW_BLOCK_SPARE_BYTES);
            self.out.resize(HEADER_SIZE_MAX, 0);
        }
        let shared = if self.row_count.is_multiple_of(RESTART_ROW_COUNT) {
            self.restarts.push(self.size_bytes() as u32);
            0
        } else {
            shared_prefix(&self.last_key, key)
        };
        self.row_count += 1;
        self.out.put_varint(shared as u64);
        self.out.put_bytes_field(&key[shared..]);
        self.out.put_u64_field(version.0);
        match value {
            None => self.out.put_varint(0),
            Some(value) => {
                self.out.put_varint(value.len() as u64 + 1);
                match overflow {
                    Some(overflow) => overflow.put(&mut self.out),
                    None if self.with_overflow => self.out.put_varint(0),
                    None => {}
                }
                self.out.extend_from_slice(value);
            }
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.out.len().saturating_sub(HEADER_SIZE_MAX)
    }

    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// The encoded block; the builder is empty again. It has a row.
    pub(crate) fn finish(&mut self) -> Bytes {
        let mut out = std::mem::take(&mut self.out);
        for restart in &self.restarts {
            out.put_u32_field(*restart);
        }
        out.put_u32_field(self.restarts.len() as u32);
        self.restarts.clear();
        self.row_count = 0;
        let rows = &out[HEADER_SIZE_MAX..];
        let mut header = Vec::with_capacity(HEADER_SIZE_MAX);
        header.put_u8_field(if self.with_overflow { KIND_ROWS_WITH_OVERFLOW } else { KIND_ROWS });
        if let Some(compressed) = compress_if_worth_it(rows, &mut self.not_tried) {
            header.put_u8_field(LZ4);
            header.put_varint(rows.len() as u64);
            return [header, compressed].concat().into();
        }
        header.put_u8_field(UNCOMPRESSED);
        header.put_varint(rows.len() as u64);
        let start = HEADER_SIZE_MAX - header.len();
        out[start..HEADER_SIZE_MAX].copy_from_slice(&header);
        Bytes::from(out).split_off(start)
    }
}
