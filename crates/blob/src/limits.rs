//! The service's published limits, and what this server takes on.

/// Bytes of all metadata of one resource, names and values.
pub const METADATA_SIZE_BYTES_MAX: usize = 8 << 10;
/// Characters of a blob's name.
pub const BLOB_NAME_CHARS_MAX: usize = 1024;
/// Segments of a blob's name.
pub const BLOB_NAME_SEGMENTS_MAX: usize = 254;
/// Blocks of a committed list, and of an append blob.
pub const COMMITTED_BLOCKS_MAX: usize = 50_000;
/// Staged blocks of one blob.
pub const STAGED_BLOCKS_MAX: u32 = 100_000;
/// Ticks that staged blocks are kept after the last one was staged: a week.
pub const STAGED_BLOCKS_KEPT_FOR_TICKS: u64 = 7 * 86_400 * base::clock::TICKS_PER_SECOND;
/// Bytes of a block id.
pub const BLOCK_ID_SIZE_BYTES_MAX: usize = 64;
/// Bytes of one block.
pub const BLOCK_SIZE_BYTES_MAX: u64 = 4000 << 20;
/// Bytes of a blob that is put whole.
pub const PUT_BLOB_SIZE_BYTES_MAX: u64 = 5000 << 20;
/// Bytes of one append.
pub const APPEND_SIZE_BYTES_MAX: u64 = 100 << 20;
/// Bytes of one write of pages.
pub const PAGES_SIZE_BYTES_MAX: u64 = 4 << 20;
/// Bytes of a page.
pub const PAGE_SIZE_BYTES: u64 = 512;
/// Bytes of a page blob.
pub const PAGE_BLOB_SIZE_BYTES_MAX: u64 = 8 << 40;
/// Bytes of a source that is copied while the client waits.
pub const SYNC_COPY_SIZE_BYTES_MAX: u64 = 256 << 20;
/// Tags of a blob.
pub const TAGS_MAX: usize = 10;
/// Characters of a tag's key.
pub const TAG_KEY_CHARS_MAX: usize = 128;
/// Characters of a tag's value.
pub const TAG_VALUE_CHARS_MAX: usize = 256;
/// Entries of a page of a listing.
pub const LIST_PAGE_MAX: usize = 5000;
/// A block blob of up to this many bytes lies in its row: one commit stores it.
pub const INLINE_SIZE_BYTES_MAX: usize = 8 << 10;
/// Rows of one blob that one operation may look at: staged blocks, lists, snapshots, pages.
pub const ROWS_OF_A_BLOB_MAX: usize = 250_000;
/// Bytes of a page blob whose ranges share a row.
pub const PAGE_REGION_SIZE_BYTES: u64 = 256 << 10;
/// Blocks that gather in a blob's row before they move to a row of their own.
pub const TAIL_BLOCKS_MAX: usize = 256;
/// Pieces of blob data of one committed list: with pieces of 4 MiB nearly 4 TiB.
pub const PIECES_OF_A_BLOB_MAX: usize = 1_000_000;
/// Pieces of the blocks that gather in a blob's row.
pub const TAIL_PIECES_MAX: usize = 1024;
/// Bytes of block ids that gather in a blob's row.
pub const TAIL_ID_BYTES_MAX: usize = 16 << 10;
