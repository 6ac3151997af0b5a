//! The bytes of a row block, which the builder writes and [`RowBlock`](super::RowBlock) reads.
//!
//! ```text
//! row block = u8 kind (1, or 6 with overflows), u8 compression (0 none, 1 LZ4 block), varint uncompressed size, content
//! content   = row*, u32 start of each eighth row, u32 count of those
//! row       = varint bytes shared with the key before, varint n, n bytes rest of the key,
//!             u64 row version, varint m (0: the row is deleted; else value length + 1), [overflow], m - 1 bytes value
//! overflow  = varint bytes (0: it has none), [varint extent, varint offset, varint payload length]
//! ```
//!
//! Where a row is there, a block of kind 6 holds the place of its overflow (see `overflow.rs`); the value is
//! without it then.
//!
//! Every eighth row shares nothing with the key before it, so that a look-up can halve its way to it.

/// A block is cut once its rows take this many bytes.
pub(crate) const ROW_BLOCK_SIZE_BYTES: usize = 16 << 10;
pub(super) const KIND_ROWS: u8 = 1;
pub(super) const KIND_ROWS_WITH_OVERFLOW: u8 = 6;
/// Each so many rows one has its whole key and its place is listed.
pub(super) const RESTART_ROW_COUNT: usize = 8;
pub(super) const UNCOMPRESSED: u8 = 0;
pub(super) const LZ4: u8 = 1;

/// How many bytes both begin with.
pub(super) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
