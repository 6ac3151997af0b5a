//! Bloom filters: which keys a part of a checkpoint certainly does not have.
//!
//! ```text
//! filter = u8 kind (3), u8 format (1), blocks of 64 bytes
//! ```
//!
//! A key's hash is XXH3-64. Its high half chooses a block, its low half eight bits in it, so that a look-up
//! touches one cache line (source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom
//! Filters", 2007). With 20 bits a key about 1 missing key in 1,000 passes, so that over 99 of 100 cost no
//! block read even when ten checkpoints are asked.
//!
//! Where the filters of all rows would outgrow the memory that is meant for them, those that compactions
//! write get fewer bits: most keys are in few large checkpoints, and a filter that must be read anew costs a
//! look-up more than a row block that is read in vain now and then (source: Dayan, Athanassoulis, Idreos,
//! "Monkey: Optimal Navigable Key-Value Store", 2017). The number of bits is not stored: it follows from the
//! number of blocks.

use base::codec::{DecodeError, Decoder};
use bytes::Bytes;
use std::sync::Arc;

/// Bits of a key in a filter that has the room.
pub(crate) const BITS_PER_KEY_MAX: u64 = 20;
/// Fewer let too many missing keys pass, with as many probes.
const BITS_PER_KEY_MIN: u64 = 6;
const BLOCK_SIZE: usize = 64;
const PROBE_COUNT: u32 = 8;
const KIND_FILTER: u8 = 3;
const FORMAT: u8 = 1;
const HEADER_SIZE: usize = 2;

/// The hash of a key that filters are built from and asked with. Stored filters depend on it: it never
/// changes.
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// A key with its hash, with which a look-up probes many filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashedKey<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) hash: u64,
}

impl<'a> HashedKey<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        HashedKey { bytes, hash: key_hash(bytes) }
    }
}

/// How many bits of each key a filter should have where all filters together, of so many rows, should take no
/// more than `size_bytes_max`, as far as that can be.
pub(crate) fn choose_bits_per_key(row_count: u64, size_bytes_max: u64) -> u64 {
    (size_bytes_max.saturating_mul(8) / row_count.max(1)).clamp(BITS_PER_KEY_MIN, BITS_PER_KEY_MAX)
}

/// The filter of the keys with these hashes.
pub(crate) fn build(hashes: &[u64], bits_per_key: u64) -> Bytes {
    let block_count = (hashes.len() * bits_per_key as usize).div_ceil(BLOCK_SIZE * 8).max(1);
    let mut out = vec![0; HEADER_SIZE + block_count * BLOCK_SIZE];
    out[0] = KIND_FILTER;
    out[1] = FORMAT;
    for &hash in hashes {
        let block = &mut out[HEADER_SIZE + block_index(hash, block_count) * BLOCK_SIZE..][..BLOCK_SIZE];
        for bit in probes(hash) {
            block[bit / 8] |= 1 << (bit % 8);
        }
    }
    out.into()
}

fn block_index(hash: u64, block_count: usize) -> usize {
    // Maps the high half evenly without a division.
    (((hash >> 32) * block_count as u64) >> 32) as usize
}

/// Bits of a block, from the low half of the hash.
fn probes(hash: u64) -> impl Iterator<Item = usize> {
    // An odd multiplier spreads the low half; each probe takes nine other bits of it.
    let mut bits = (hash & 0xffff_ffff).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..PROBE_COUNT).map(move |_| {
        let bit = (bits >> 55) as usize;
        bits = bits.rotate_left(9).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bit
    })
}

/// A filter read back. What was read stands anywhere, so it is copied: a block is one cache line, not parts
/// of two.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    blocks: Arc<[FilterLine]>,
}

impl Filter {
    pub(crate) fn parse(payload: Bytes) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(&payload);
        if decoder.u8("filter kind")? != KIND_FILTER || decoder.u8("filter format")? != FORMAT {
            return Err(DecodeError("filter kind"));
        }
        match decoder.rest().as_chunks() {
            ([], _) => Err(DecodeError("filter size")),
            (blocks, []) => Ok(Filter { blocks: blocks.iter().copied().map(FilterLine).collect() }),
            _ => Err(DecodeError("filter size")),
        }
    }

    /// False: no such key, for certain.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.line(hash).may_contain(hash)
    }

    /// The line that covers keys with this hash.
    pub(crate) fn line(&self, hash: u64) -> &FilterLine {
        &self.blocks[block_index(hash, self.blocks.len())]
    }

    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }
}

/// The block of a filter that some keys are in, a line of the processor's cache.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct FilterLine([u8; BLOCK_SIZE]);

impl FilterLine {
    /// False: no such key, for certain. `hash` is the one the line was asked for.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        probes(hash).all(|bit| self.0[bit / 8] & (1 << (bit % 8)) != 0)
    }

    /// Any byte of it, to have it fetched.
    pub(crate) fn touch(&self) -> u8 {
        self.0[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_and_few_others() {
        let hash = |index: u32| key_hash(format!("key {index}").as_bytes());
        let hashes: Vec<u64> = (0..10_000).map(hash).collect();
        for (bits_per_key, wrong_max) in
            [(20, 100), (16, 200), (12, 800), (10, 1_500), (8, 4_000), (6, 11_000)]
        {
            let filter = Filter::parse(build(&hashes, bits_per_key)).unwrap();
            assert!(filter.size_bytes() as u64 <= 10_000 * bits_per_key / 8 + BLOCK_SIZE as u64);
            assert!((0..10_000).all(|index| filter.may_contain(hash(index))));
            let wrong = (10_000..110_000).filter(|&index| filter.may_contain(hash(index))).count();
            assert!(
                wrong < wrong_max,
                "{bits_per_key} bits: {wrong} of 100,000 missing keys pass the filter"
            );
        }
    }

    #[test]
    fn filters_have_fewer_bits_where_they_would_outgrow_their_memory() {
        for (row_count, size_bytes_max, bits_per_key) in [
            (0, 0, 6),
            (0, 1 << 20, 20),
            (1_000, 2_500, 20),
            (1_000, 2_499, 19),
            (1_000, 1_250, 10),
            (1_000, 100, 6),
            (u64::MAX, 1 << 20, 6),
            (1, u64::MAX, 20),
        ] {
            assert_eq!(choose_bits_per_key(row_count, size_bytes_max), bits_per_key, "{row_count} rows");
        }
    }

    #[test]
    fn malformed_filters_are_refused() {
        assert!(Filter::parse(Bytes::from_static(&[3, 1])).is_err());
        assert!(Filter::parse(Bytes::from_static(&[3, 1, 0])).is_err());
        assert!(Filter::parse(Bytes::from_static(&[1, 1, 0])).is_err());
        assert!(Filter::parse(Bytes::new()).is_err());
    }
}
