//! Where a blob's bytes are: in its row, in pieces, or in the rows of its pages.
//!
//! ```text
//! content = u8 kind: 0 in the row    bytes (until format 3 of the folder; read, not written)
//!                    1 blocks        u64 generation, varint chunk count, chunk*, blocks
//!                    2 pages         u64 owner (0: the base blob; else the snapshot)
//!                    3 in the row    bytes up to its end: the row's tail
//! chunk   = varint block count, varint bytes
//! blocks  = varint count, block*        block = bytes(id) varint bytes, varint piece count
//! ```
//!
//! The pieces of the blocks come first in the row, as the partition layer wants it, in the order of the
//! blocks. A long list lies in rows of its own, *chunks*, which never change; a snapshot and its blob share
//! those of a generation.

pub(crate) mod md5_lanes;
pub(crate) mod md5_together;
pub(crate) mod upload;

use crate::encryption::Encryption;
use crate::rows::fields::{put_text, take_text};
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use partition::{Piece, RowStart, put_pieces, take_pieces};

/// One block: its id, empty for bytes that were put whole, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The decoded id.
    pub id: Bytes,
    /// Its bytes.
    pub size: u64,
    /// Where they are.
    pub pieces: Vec<Piece>,
}

/// A row of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How many.
    pub blocks: u32,
    /// Their bytes.
    pub size: u64,
}

/// A list of blocks: chunks, then those in the row itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockContent {
    /// Part of the chunks' keys.
    pub generation: u64,
    /// The chunks in order.
    pub chunks: Vec<Chunk>,
    /// The blocks after them.
    pub tail: Vec<Block>,
}

/// Where the bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// In the row.
    Inline(Bytes),
    /// In the row, of which only the head was read.
    Unread,
    /// In blocks.
    Blocks(BlockContent),
    /// In rows of pages that belong to this owner.
    Pages(u64),
}

impl Content {
    /// What the row starts with; `None`: not all of it was read, so it can't be written.
    pub(crate) fn row_start(&self) -> Option<RowStart> {
        match self {
            Content::Unread => None,
            Content::Inline(bytes) => Some(RowStart { pieces: Vec::new(), overflow_size_bytes: bytes.len() }),
            Content::Blocks(blocks) => {
                Some(RowStart { pieces: pieces_of(&blocks.tail), overflow_size_bytes: 0 })
            }
            Content::Pages(_) => Some(RowStart::default()),
        }
    }

    /// Appends the stored form, without the row's start; nothing may follow.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Content::Inline(bytes) => {
                out.put_u8_field(3);
                out.extend_from_slice(bytes);
            }
            Content::Unread => out.put_u8_field(3),
            Content::Blocks(blocks) => {
                out.put_u8_field(1);
                out.put_u64_field(blocks.generation);
                out.put_varint(blocks.chunks.len() as u64);
                for chunk in &blocks.chunks {
                    out.put_varint(u64::from(chunk.blocks));
                    out.put_varint(chunk.size);
                }
                put_blocks(out, &blocks.tail);
            }
            Content::Pages(owner) => {
                out.put_u8_field(2);
                out.put_u64_field(*owner);
            }
        }
    }

    /// Reads the stored form of a row with this start.
    pub(crate) fn decode(decoder: &mut Decoder<'_>, start: RowStart) -> Result<Self, DecodeError> {
        let RowStart { pieces, overflow_size_bytes } = start;
        match decoder.u8("content kind")? {
            0 => Ok(Content::Inline(Bytes::copy_from_slice(decoder.bytes("content")?))),
            1 => {
                let generation = decoder.u64("generation")?;
                let mut chunks = Vec::new();
                for _ in 0..decoder.varint("chunk count")? {
                    let blocks = u32::try_from(decoder.varint("chunk blocks")?);
                    let blocks = blocks.map_err(|_| DecodeError("chunk blocks"))?;
                    chunks.push(Chunk { blocks, size: decoder.varint("chunk bytes")? });
                }
                let tail = take_blocks(decoder, pieces)?;
                Ok(Content::Blocks(BlockContent { generation, chunks, tail }))
            }
            2 => Ok(Content::Pages(decoder.u64("owner of pages")?)),
            3 if overflow_size_bytes > 0 && decoder.is_empty() => Ok(Content::Unread),
            3 => Ok(Content::Inline(Bytes::copy_from_slice(decoder.take(overflow_size_bytes, "content")?))),
            _ => Err(DecodeError("content kind")),
        }
    }
}

fn pieces_of(blocks: &[Block]) -> Vec<Piece> {
    blocks.iter().flat_map(|block| block.pieces.iter().copied()).collect()
}

fn put_blocks(out: &mut Vec<u8>, blocks: &[Block]) {
    out.put_varint(blocks.len() as u64);
    for block in blocks {
        out.put_bytes_field(&block.id);
        out.put_varint(block.size);
        out.put_varint(block.pieces.len() as u64);
    }
}

fn take_blocks(decoder: &mut Decoder<'_>, pieces: Vec<Piece>) -> Result<Vec<Block>, DecodeError> {
    let mut pieces = pieces.into_iter();
    let mut blocks = Vec::new();
    for _ in 0..decoder.varint("block count")? {
        let id = Bytes::copy_from_slice(decoder.bytes("block id")?);
        let size = decoder.varint("block bytes")?;
        let count = decoder.varint("block pieces")?;
        let own: Vec<Piece> = pieces.by_ref().take(usize::try_from(count).unwrap_or(usize::MAX)).collect();
        if own.len() as u64 != count || own.iter().map(Piece::size_bytes).sum::<u64>() != size {
            return Err(DecodeError("block pieces"));
        }
        blocks.push(Block { id, size, pieces: own });
    }
    if pieces.next().is_some() { Err(DecodeError("pieces without block")) } else { Ok(blocks) }
}

const BLOCK_ROW_FORMAT: u8 = 1;
/// With what a staged block is encrypted with behind it: text SHA-256 of the key, text scope.
const ENCRYPTED_ROW_FORMAT: u8 = 2;

/// The value of a row of blocks: a chunk, or one staged block.
pub(crate) fn encode_block_row(blocks: &[Block]) -> Vec<u8> {
    let mut out = Vec::new();
    put_pieces(&mut out, &pieces_of(blocks));
    out.put_u8_field(BLOCK_ROW_FORMAT);
    put_blocks(&mut out, blocks);
    out
}

/// The value of the row of a staged block.
pub(crate) fn encode_staged_row(block: Block, encryption: &Encryption) -> Vec<u8> {
    if *encryption == Encryption::default() {
        return encode_block_row(&[block]);
    }
    let mut out = Vec::new();
    put_pieces(&mut out, &block.pieces);
    out.put_u8_field(ENCRYPTED_ROW_FORMAT);
    put_blocks(&mut out, &[block]);
    put_text(&mut out, encryption.key_sha256.as_deref());
    put_text(&mut out, encryption.scope.as_deref());
    out
}

/// Reads a row of blocks.
pub(crate) fn decode_block_row(value: &[u8]) -> Result<Vec<Block>, DecodeError> {
    decode_staged_row(value).map(|(blocks, _)| blocks)
}

/// The same, with what a staged block is encrypted with.
pub(crate) fn decode_staged_row(value: &[u8]) -> Result<(Vec<Block>, Encryption), DecodeError> {
    let mut decoder = Decoder::new(value);
    let pieces = take_pieces(&mut decoder)?;
    let format = decoder.u8("block row format")?;
    if format != BLOCK_ROW_FORMAT && format != ENCRYPTED_ROW_FORMAT {
        return Err(DecodeError("block row format"));
    }
    let blocks = take_blocks(&mut decoder, pieces)?;
    let mut encryption = Encryption::default();
    if format == ENCRYPTED_ROW_FORMAT {
        encryption = Encryption { key_sha256: take_text(&mut decoder)?, scope: take_text(&mut decoder)? };
    }
    decoder.finish("block row")?;
    Ok((blocks, encryption))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(id: &'static [u8], pieces: &[u32]) -> Block {
        let pieces: Vec<Piece> = pieces.iter().map(|len| Piece::for_tests(3, 64, *len)).collect();
        let size = pieces.iter().map(Piece::size_bytes).sum();
        Block { id: Bytes::from_static(id), size, pieces }
    }

    #[test]
    fn rows_of_blocks_come_back() {
        let blocks = vec![block(b"", &[5]), block(b"two", &[1, 4096]), block(b"empty", &[])];
        assert_eq!(decode_block_row(&encode_block_row(&blocks)), Ok(blocks));
        assert!(decode_block_row(b"").is_err());
        let encryption = Encryption { key_sha256: Some("hash".into()), scope: None };
        let staged = encode_staged_row(block(b"id", &[7]), &encryption);
        assert_eq!(decode_staged_row(&staged), Ok((vec![block(b"id", &[7])], encryption)));
        assert_eq!(decode_block_row(&staged), Ok(vec![block(b"id", &[7])]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = decode_block_row(&bytes);
            for overflow_size_bytes in 0..3 {
                let start = RowStart { pieces: Vec::new(), overflow_size_bytes };
                let _ = Content::decode(&mut Decoder::new(&bytes), start);
            }
        }
    }
}
