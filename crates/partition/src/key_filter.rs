//! Which keys a memory table certainly does not have: most look-ups are for rows that have long left it, and a look at
//! one cache line is cheaper than a walk down its tree.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a filter: 128 KiB, 32 bits a row for a full table of 1 KiB rows.
const WORD_COUNT: usize = 1 << 14;
/// Words that one key touches, all in one cache line.
const LINE_WORD_COUNT: usize = 8;
const PROBE_COUNT: u32 = 4;

/// A set of key hashes that may claim too much, never too little. Grows from many threads.
pub(crate) struct KeyFilter {
    words: Box<[AtomicU64]>,
}

impl Default for KeyFilter {
    fn default() -> Self {
        KeyFilter { words: (0..WORD_COUNT).map(|_| AtomicU64::new(0)).collect() }
    }
}

/// Word and bit of each probe of a hash.
fn probes(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    let line = (hash >> 48) as usize % (WORD_COUNT / LINE_WORD_COUNT) * LINE_WORD_COUNT;
    (0..PROBE_COUNT).map(move |probe| {
        let bits = (hash >> (probe * 9)) as usize & 511;
        (line + bits / 64, 1 << (bits % 64))
    })
}

impl KeyFilter {
    /// Adds a key by its hash. Before the key itself is added, so that whoever can see the key sees this.
    pub(crate) fn add(&self, hash: u64) {
        for (word, bit) in probes(hash) {
            if self.words[word].load(Ordering::Relaxed) & bit == 0 {
                self.words[word].fetch_or(bit, Ordering::Release);
            }
        }
    }

    /// False: no such key was added, for certain.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        probes(hash).all(|(word, bit)| self.words[word].load(Ordering::Acquire) & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::key_hash;

    #[test]
    fn every_key_is_found_and_few_others() {
        let filter = KeyFilter::default();
        let hash = |index: u32| key_hash(&index.to_le_bytes());
        (0..30_000).for_each(|index| filter.add(hash(index)));
        assert!((0..30_000).all(|index| filter.may_contain(hash(index))));
        let wrong = (30_000..130_000).filter(|&index| filter.may_contain(hash(index))).count();
        assert!(wrong < 1_000, "{wrong} of 100,000 missing keys pass the filter");
    }
}
