//! Bloom filters: which keys a part of a checkpoint certainly does not have.
//!
//! ```text
//! filter = u8 kind (3), u8 hashes k, bits (8 a byte)
//! ```
//!
//! 16 bits a key and 8 hashes: about 6 false positives in 10,000 (source: Bloom, "Space/Time Trade-offs in Hash
//! Coding with Allowable Errors", CACM 1970), so that a missing key costs no block read in over 99 of 100 cases even
//! when ten checkpoints are asked.

use base::FixedHasher;
use base::codec::{DecodeError, Decoder};
use bytes::Bytes;
use std::hash::Hasher;

const BITS_PER_KEY: usize = 16;
const HASH_COUNT: u8 = 8;
const KIND_FILTER: u8 = 3;
const HEADER_SIZE: usize = 2;

/// The hash of a key that filters are built from and asked with.
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    let mut hasher = FixedHasher::default();
    hasher.write(key);
    hasher.finish()
}

/// The filter of the keys with these hashes.
pub(super) fn build(hashes: &[u64]) -> Bytes {
    let bits = (hashes.len() * BITS_PER_KEY).max(64);
    let mut out = vec![0; HEADER_SIZE + bits.div_ceil(8)];
    out[0] = KIND_FILTER;
    out[1] = HASH_COUNT;
    let bit_count = (out.len() - HEADER_SIZE) as u64 * 8;
    for &hash in hashes {
        for bit in probes(hash, HASH_COUNT, bit_count) {
            out[HEADER_SIZE + (bit / 8) as usize] |= 1 << (bit % 8);
        }
    }
    out.into()
}

fn probes(hash: u64, count: u8, bit_count: u64) -> impl Iterator<Item = u64> {
    // Double hashing (Kirsch, Mitzenmacher, "Less Hashing, Same Performance", 2006).
    let step = hash.rotate_left(32) | 1;
    (0..u64::from(count)).map(move |index| hash.wrapping_add(index.wrapping_mul(step)) % bit_count)
}

/// A filter read back.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    hash_count: u8,
    bits: Bytes,
}

impl Filter {
    pub(super) fn parse(payload: Bytes) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(&payload);
        if decoder.u8("filter kind")? != KIND_FILTER {
            return Err(DecodeError("filter kind"));
        }
        let hash_count = decoder.u8("filter hashes")?;
        if decoder.is_empty() {
            return Err(DecodeError("filter bits"));
        }
        Ok(Filter { hash_count, bits: payload.slice(HEADER_SIZE..) })
    }

    /// False: no such key, for certain.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let bit_count = self.bits.len() as u64 * 8;
        probes(hash, self.hash_count, bit_count)
            .all(|bit| self.bits[(bit / 8) as usize] & (1 << (bit % 8)) != 0)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.bits.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_and_few_others() {
        let hash = |index: u32| key_hash(format!("key {index}").as_bytes());
        let filter = Filter::parse(build(&(0..10_000).map(hash).collect::<Vec<_>>())).unwrap();
        assert!((0..10_000).all(|index| filter.may_contain(hash(index))));
        let wrong = (10_000..110_000).filter(|&index| filter.may_contain(hash(index))).count();
        assert!(wrong < 150, "{wrong} of 100,000 missing keys pass the filter");
    }

    #[test]
    fn malformed_filters_are_refused() {
        assert!(Filter::parse(Bytes::from_static(&[3, 8])).is_err());
        assert!(Filter::parse(Bytes::from_static(&[1, 8, 0])).is_err());
        assert!(Filter::parse(Bytes::new()).is_err());
    }
}
