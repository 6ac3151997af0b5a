//! Chance that repeats: hashes of a seed, of texts and of counts.
//!
//! What always holds: the same seed and the same inputs give the same number, whatever else was drawn.

use base::random::{SPLITMIX64_STEP, splitmix64};

/// A number of 64 bits made of the seed and the parts, each with its length, so that no two lists of parts
/// are alike by accident of where one ends.
pub(crate) fn hash(seed: u64, parts: &[&str]) -> u64 {
    let mut state = seed;
    for part in parts {
        mix(&mut state, part.len() as u64);
        for chunk in part.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(&mut state, u64::from_le_bytes(word));
        }
    }
    state
}

/// The same of a number.
pub(crate) fn hash_number(seed: u64, number: u64) -> u64 {
    let mut state = seed;
    mix(&mut state, number);
    state
}

fn mix(state: &mut u64, word: u64) {
    let mut mixed = *state ^ word.wrapping_mul(SPLITMIX64_STEP);
    *state = splitmix64(&mut mixed);
}

/// A hash as a number from 0 up to 1.
pub(crate) fn share(hash: u64) -> f64 {
    // 53 bits: what a double holds.
    (hash >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_their_borders_count() {
        assert_eq!(hash(7, &["a", "bc"]), hash(7, &["a", "bc"]));
        let others =
            [hash(8, &["a", "bc"]), hash(7, &["ab", "c"]), hash(7, &["a", "bc", ""]), hash(7, &["abc"])];
        assert!(others.iter().all(|other| *other != hash(7, &["a", "bc"])));
        assert_ne!(hash(7, &["\0"]), hash(7, &[""]));
    }

    #[test]
    fn shares_are_even() {
        let below = (0..10_000).filter(|number| share(hash_number(3, *number)) < 0.25).count();
        assert!((2_300..2_700).contains(&below), "{below}");
        assert!((0..10_000).all(|number| (0.0..1.0).contains(&share(hash_number(9, number)))));
        assert!(share(u64::MAX) < 1.0);
    }
}
