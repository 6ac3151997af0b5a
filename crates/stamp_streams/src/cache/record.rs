//! A block as the cache stores it, and the list of blocks at the end of a file. Numbers are little-endian.
//!
//! ```text
//! record: 4 magic "LBLK", 4 size of the block, 16 stamp, 16 generation, 24 extent, 8 offset in it,
//!         8 CRC-64/NVME of what is before and of the block; the block
//! list:   for each block 8 CRC-64/NVME of its key, 8 offset of its record in the file, 4 size of the record;
//!         8 count, 8 CRC-64/NVME of what is before, 4 magic "LEND"
//! ```

use base::checksum::crc64;
use base::codec::Encode;
use bytes::Bytes;
use stamp::{ExtentName, StampLife};

const MAGIC: &[u8; 4] = b"LBLK";
const KEY_SIZE: usize = 16 + 16 + 24 + 8;
/// Bytes before a block.
pub(super) const RECORD_HEADER_SIZE: usize = 4 + 4 + KEY_SIZE + 8;
const LIST_MAGIC: &[u8; 4] = b"LEND";
const LISTED_SIZE: usize = 8 + 8 + 4;
/// Bytes behind a list.
pub(super) const LIST_END_SIZE: usize = 8 + 8 + 4;

/// Which block: names of extents are unique within a life of the stamp, and a block never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockKey {
    pub(crate) life: StampLife,
    pub(crate) extent: ExtentName,
    /// Of the block's header in the extent.
    pub(crate) offset: u64,
}

impl BlockKey {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(RECORD_HEADER_SIZE);
        out.put_raw(&self.life.stamp.0.to_le_bytes());
        out.put_raw(&self.life.generation.0.to_le_bytes());
        self.extent.0.encode(&mut out);
        out.put_u64_field(self.offset);
        out
    }

    /// What the index knows it by. Two keys may have one hash; the record has the whole key.
    pub(super) fn hash(&self) -> u64 {
        crc64(&[&self.encode()])
    }
}

/// Where a record is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) hash: u64,
    pub(super) offset: u64,
    pub(super) size: u32,
}

/// Bytes of the record of a block.
pub(super) fn record_size(block: &Bytes) -> usize {
    RECORD_HEADER_SIZE + block.len()
}

/// Appends the record of a block.
pub(super) fn put_record(out: &mut Vec<u8>, key: &BlockKey, block: &[u8]) {
    let begin = out.len();
    out.put_raw(MAGIC);
    out.put_raw(&(block.len() as u32).to_le_bytes());
    out.put_raw(&key.encode());
    let checksum = crc64(&[&out[begin..], block]);
    out.put_u64_field(checksum);
    out.put_raw(block);
}

/// The block of a record, if that is whole and of this key.
pub(super) fn block_of(record: &Bytes, key: &BlockKey) -> Option<Bytes> {
    let (header, block) = record.split_at_checked(RECORD_HEADER_SIZE)?;
    let (fields, checksum) = header.split_at_checked(RECORD_HEADER_SIZE - 8)?;
    let is_whole = fields[..4] == *MAGIC
        && fields[4..8] == (block.len() as u32).to_le_bytes()
        && fields[8..] == *key.encode()
        && *checksum == crc64(&[fields, block]).to_le_bytes();
    is_whole.then(|| record.slice(RECORD_HEADER_SIZE..))
}

/// The list of the blocks of a file.
pub(super) fn encode_list(blocks: &[Listed]) -> Vec<u8> {
    let mut out = Vec::with_capacity(blocks.len() * LISTED_SIZE + LIST_END_SIZE);
    for block in blocks {
        out.put_u64_field(block.hash);
        out.put_u64_field(block.offset);
        out.put_raw(&block.size.to_le_bytes());
    }
    out.put_u64_field(blocks.len() as u64);
    let checksum = crc64(&[&out]);
    out.put_u64_field(checksum);
    out.put_raw(LIST_MAGIC);
    out
}

/// Bytes of the list and what is behind it, by a file's last bytes.
pub(super) fn list_size(end: &[u8]) -> Option<u64> {
    let end = end.get(end.len().checked_sub(LIST_END_SIZE)?..)?;
    let count = u64::from_le_bytes(end[..8].try_into().ok()?);
    let is_list = end[16..] == *LIST_MAGIC;
    is_list.then(|| count.checked_mul(LISTED_SIZE as u64)?.checked_add(LIST_END_SIZE as u64)).flatten()
}

/// Reads what [`encode_list`] wrote.
pub(super) fn decode_list(bytes: &[u8]) -> Option<Vec<Listed>> {
    let (fields, end) = bytes.split_at_checked(bytes.len().checked_sub(LIST_END_SIZE - 8)?)?;
    if end[..8] != crc64(&[fields]).to_le_bytes() || end[8..] != *LIST_MAGIC {
        return None;
    }
    let blocks = fields.get(..fields.len().checked_sub(8)?)?.chunks_exact(LISTED_SIZE);
    let listed = |bytes: &[u8]| {
        Some(Listed {
            hash: u64::from_le_bytes(bytes[..8].try_into().ok()?),
            offset: u64::from_le_bytes(bytes[8..16].try_into().ok()?),
            size: u32::from_le_bytes(bytes[16..].try_into().ok()?),
        })
    };
    blocks.map(listed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stamp::{Generation, Incarnation, StampId, UniqueName};

    fn key(offset: u64) -> BlockKey {
        let life = StampLife { stamp: StampId(1), generation: Generation(2) };
        let extent = ExtentName(UniqueName { incarnation: Incarnation(3), counter: 4 });
        BlockKey { life, extent, offset }
    }

    #[test]
    fn a_record_is_read_for_its_own_key_only_and_each_flipped_bit_is_seen() {
        let mut bytes = Vec::new();
        put_record(&mut bytes, &key(5), b"a block");
        assert_eq!(bytes.len(), RECORD_HEADER_SIZE + 7);
        assert_eq!(block_of(&bytes.clone().into(), &key(5)).as_deref(), Some(&b"a block"[..]));
        let other_life = StampLife { generation: Generation(9), ..key(5).life };
        for other in [key(6), BlockKey { life: other_life, ..key(5) }] {
            assert_eq!(block_of(&bytes.clone().into(), &other), None);
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(block_of(&flipped.into(), &key(5)), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(block_of(&bytes[..len].to_vec().into(), &key(5)), None, "{len} bytes");
        }
    }

    #[test]
    fn a_list_is_read_from_a_files_end_or_not_at_all() {
        for count in [0, 1, 3] {
            let block = |number: u64| Listed { hash: number << 40, offset: number * 100, size: 100 };
            let blocks: Vec<Listed> = (0..count).map(block).collect();
            let bytes = encode_list(&blocks);
            assert_eq!(list_size(&bytes), Some(bytes.len() as u64));
            assert_eq!(decode_list(&bytes), Some(blocks));
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                assert_eq!(decode_list(&damaged), None, "byte {at}");
            }
        }
        assert_eq!((list_size(b""), decode_list(b"")), (None, None));
    }
}
