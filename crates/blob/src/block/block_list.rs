//! The committed list of a blob's blocks as rows store it: a short one in the record, a long one in chunks.
//!
//! What always holds: a chunk's blocks and pieces are bounded, because a reader unpacks one chunk at a time.

use crate::content::{Block, BlockContent, Chunk, Content, decode_block_row, encode_block_row};
use crate::limits::{TAIL_BLOCKS_MAX, TAIL_ID_BYTES_MAX, TAIL_PIECES_MAX};
use crate::rows::chunk_row::{chunk_row, chunks_prefix};
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::record::BlobRecord;
use base::Ticks;

/// Blocks of a chunk.
const CHUNK_BLOCKS_MAX: usize = 1000;
/// Pieces of the blocks of a chunk that has more than one: a reader unpacks one chunk at a time.
const CHUNK_PIECES_MAX: usize = 4096;

/// The blocks of a committed list, those in chunks too.
pub(crate) fn committed(rows: &BlobRows, record: &BlobRecord) -> Result<Vec<Block>, Stop> {
    let Content::Blocks(content) = &record.content else { return Ok(Vec::new()) };
    let mut blocks = Vec::new();
    if !content.chunks.is_empty() {
        rows.need_rows(&chunks_prefix(content.generation))?;
    }
    for index in 0..content.chunks.len() {
        let row = rows.row(&chunk_row(content.generation, index))?;
        let row = row.ok_or(base::codec::DecodeError("a chunk of a block list is missing"))?;
        blocks.extend(decode_block_row(row)?);
    }
    blocks.extend(content.tail.iter().cloned());
    Ok(blocks)
}

/// How many of the next blocks become a chunk, by the pieces that each of them has.
fn choose_chunk_len(piece_counts: impl IntoIterator<Item = usize>) -> usize {
    let sums = piece_counts.into_iter().scan(0usize, |sum, count| {
        *sum += count;
        Some(*sum)
    });
    let fits = sums.take(CHUNK_BLOCKS_MAX).take_while(|sum| *sum <= CHUNK_PIECES_MAX).count();
    fits.max(1)
}

/// Stores a list: short ones in the record, long ones in chunks of a new generation.
pub(crate) fn store_list(rows: &mut BlobRows, blocks: Vec<Block>, now: Ticks) -> BlockContent {
    let id_bytes: usize = blocks.iter().map(|block| block.id.len()).sum();
    let piece_count: usize = blocks.iter().map(|block| block.pieces.len()).sum();
    if blocks.len() <= TAIL_BLOCKS_MAX && id_bytes <= TAIL_ID_BYTES_MAX && piece_count <= TAIL_PIECES_MAX {
        return BlockContent { tail: blocks, ..BlockContent::default() };
    }
    let mut content = BlockContent { generation: now.0, ..BlockContent::default() };
    let mut rest = &blocks[..];
    while !rest.is_empty() {
        let len = choose_chunk_len(rest.iter().map(|block| block.pieces.len()));
        let (blocks, others) = rest.split_at(len);
        rows.put(chunk_row(now.0, content.chunks.len()), encode_block_row(blocks));
        let size = blocks.iter().map(|block| block.size).sum();
        content.chunks.push(Chunk { blocks: blocks.len() as u32, size });
        rest = others;
    }
    content
}

#[cfg(test)]
mod tests {
    use super::choose_chunk_len;

    #[test]
    fn chunks_end_with_their_blocks_or_their_pieces() {
        for (piece_counts, expected) in [
            (vec![1; 5], vec![5]),
            (vec![1; 2500], vec![1000, 1000, 500]),
            (vec![0; 1001], vec![1000, 1]),
            (vec![1000; 10], vec![4, 4, 2]),
            (vec![4096, 1], vec![1, 1]),
            (vec![1, 4095, 1], vec![2, 1]),
            (vec![62_500, 62_500, 1], vec![1, 1, 1]),
            (vec![1, 62_500, 1], vec![1, 1, 1]),
        ] {
            let (mut rest, mut lens) = (&piece_counts[..], Vec::new());
            while !rest.is_empty() {
                lens.push(choose_chunk_len(rest.iter().copied()));
                rest = &rest[lens[lens.len() - 1]..];
            }
            assert_eq!(lens, expected, "{} blocks", piece_counts.len());
        }
    }
}
