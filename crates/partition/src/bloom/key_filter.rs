//! Which keys a set that grows certainly does not have: those of a memory table, since most look-ups are for
//! rows that have long left it and a look at one cache line is cheaper than a walk down its tree, or those of
//! several checkpoints.

use std::sync::atomic::{AtomicU64, Ordering};

const LINE_WORD_COUNT: usize = 8;
const PROBE_COUNT: u32 = 4;

/// A set of key hashes that may claim too much, never too little. Grows from many threads.
pub(crate) struct KeyFilter {
    lines: Box<[KeyLine]>,
}

/// The part of it that some keys are in, a line of the processor's cache.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct KeyLine([AtomicU64; LINE_WORD_COUNT]);

/// Word and bit of each probe of a hash, from its low bits.
fn probes(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..PROBE_COUNT).map(move |probe| {
        let bits = (hash >> (probe * 9)) as usize & 511;
        (bits / 64, 1 << (bits % 64))
    })
}

impl KeyFilter {
    /// An empty one of this size, rounded up to whole lines.
    pub(crate) fn new(size_bytes: usize) -> Self {
        let line_count = size_bytes.div_ceil(size_of::<KeyLine>()).max(1);
        KeyFilter { lines: (0..line_count).map(|_| KeyLine::default()).collect() }
    }

    /// The line that covers keys with this hash.
    pub(crate) fn line(&self, hash: u64) -> &KeyLine {
        // Maps the high half evenly without a division.
        &self.lines[(((hash >> 32) * self.lines.len() as u64) >> 32) as usize]
    }

    /// Adds a key by its hash. Before the key itself is added, so that a reader that sees the key sees this.
    pub(crate) fn add(&self, hash: u64) {
        let line = self.line(hash);
        for (word, bit) in probes(hash) {
            if line.0[word].load(Ordering::Relaxed) & bit == 0 {
                line.0[word].fetch_or(bit, Ordering::Release);
            }
        }
    }

    /// False: no such key was added, for certain.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.line(hash).may_contain(hash)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }
}

impl KeyLine {
    /// False: no such key was added, for certain. `hash` is the one the line was asked for.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        probes(hash).all(|(word, bit)| self.0[word].load(Ordering::Acquire) & bit != 0)
    }

    /// Any word of it, to have it fetched.
    pub(crate) fn touch(&self) -> u64 {
        self.0[0].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::key_hash;

    #[test]
    fn every_key_is_found_and_few_others() {
        // Bits a key, keys in 100,000 that pass wrongly.
        for (size_bytes, wrong_max) in [(120_000, 200), (45_000, 1_500)] {
            let filter = KeyFilter::new(size_bytes);
            let hash = |index: u32| key_hash(&index.to_le_bytes());
            (0..30_000).for_each(|index| filter.add(hash(index)));
            assert!((0..30_000).all(|index| filter.may_contain(hash(index))));
            let wrong = (30_000..130_000).filter(|&index| filter.may_contain(hash(index))).count();
            assert!(
                wrong < wrong_max,
                "{wrong} of 100,000 missing keys pass the filter of {size_bytes} bytes"
            );
        }
    }

    #[test]
    fn a_filter_has_a_line_at_least() {
        let filter = KeyFilter::new(0);
        assert_eq!(filter.size_bytes(), 64);
        assert!(!filter.may_contain(u64::MAX));
        filter.add(u64::MAX);
        assert!(filter.may_contain(u64::MAX));
        assert_eq!(KeyFilter::new(65).size_bytes(), 128);
    }
}
