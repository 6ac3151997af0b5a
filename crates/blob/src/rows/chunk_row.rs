//! Rows of chunks: parts of a list of blocks that is too long for its record.
//!
//! ```text
//! row name = 3c GENERATION INDEX   16 and 8 hexadecimal digits
//! ```
//!
//! Several records may name the chunks of one generation; the chunks stay until the last of these is removed.

use crate::content::Content;
use crate::rows::record::BlobRecord;

/// Row name of a chunk.
pub(crate) fn chunk_row(generation: u64, index: usize) -> String {
    format!("{}{index:08x}", chunks_prefix(generation))
}

/// Start of the row names of a generation's chunks.
pub(crate) fn chunks_prefix(generation: u64) -> String {
    format!("3c{generation:016x}")
}

/// The generation whose chunks a record names.
pub(super) fn generation_of(record: &BlobRecord) -> Option<u64> {
    match &record.content {
        Content::Blocks(blocks) if !blocks.chunks.is_empty() => Some(blocks.generation),
        _ => None,
    }
}
