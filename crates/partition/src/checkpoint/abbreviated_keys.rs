//! Eight bytes of each of many sorted keys, side by side: a binary search over them touches few cache lines,
//! where one over the keys themselves fetches a far place of memory with each step.
//!
//! The bytes are those behind what all keys have in common, since the keys of one checkpoint begin alike:
//! with account and table. What always holds: the answer is the one that comparing whole keys gives; keys
//! with the same head are compared whole.

use std::cmp::Ordering;

/// Heads of which the first one is listed once more: two cache lines of them.
pub(super) const GROUP_LEN: usize = 16;

/// The heads of sorted keys. It does not keep the keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct AbbreviatedKeys {
    /// So many bytes begin every key.
    shared: usize,
    heads: Vec<u64>,
    /// The first head of each group. There are so few that they stay in the processor's caches.
    firsts: Vec<u64>,
}

impl AbbreviatedKeys {
    /// What it costs for each key.
    pub(crate) const BYTES_PER_KEY: usize = size_of::<u64>() + size_of::<u64>().div_ceil(GROUP_LEN);

    /// The heads of `count` keys that never fall.
    pub(crate) fn of<'a>(count: usize, key_at: impl Fn(usize) -> &'a [u8]) -> Self {
        let Some(last) = count.checked_sub(1) else { return AbbreviatedKeys::default() };
        let shared = key_at(0).iter().zip(key_at(last)).take_while(|(a, b)| a == b).count();
        // Keys that fall are damage that others find; here they only must not be read past their ends.
        let heads: Vec<u64> =
            (0..count).map(|at| head(key_at(at).get(shared..).unwrap_or_default())).collect();
        let firsts = firsts_of(&heads).collect();
        AbbreviatedKeys { shared, heads, firsts }
    }

    /// The head of `key`, if it begins as all keys do; else whether they are all before it or all behind it.
    fn head_of<'a>(&self, key: &[u8], key_at: impl Fn(usize) -> &'a [u8]) -> Result<u64, Ordering> {
        if self.heads.is_empty() {
            return Err(Ordering::Greater);
        }
        let (start, rest) = key.split_at(self.shared.min(key.len()));
        match key_at(0)[..self.shared].cmp(start) {
            Ordering::Equal => Ok(head(rest)),
            order => Err(order),
        }
    }

    /// Whether the key numbered `at` is less than `key`. It is fetched only where its head is the same.
    pub(crate) fn is_below<'a>(&self, at: usize, key: &[u8], key_at: impl Fn(usize) -> &'a [u8]) -> bool {
        let order =
            self.head_of(key, &key_at).map_or_else(|order| order, |wanted| self.heads[at].cmp(&wanted));
        order.then_with(|| key_at(at).cmp(key)).is_lt()
    }

    /// How many of the keys are less than `key`; `key_at` shows the keys that this was made of.
    pub(crate) fn count_below<'a>(&self, key: &[u8], key_at: impl Fn(usize) -> &'a [u8]) -> usize {
        let wanted = match self.head_of(key, &key_at) {
            Ok(wanted) => wanted,
            Err(Ordering::Less) => return self.heads.len(),
            Err(_) => return 0,
        };
        let mut low = heads_below(&self.firsts, &self.heads, wanted);
        // Most keys have a head of their own: no search then, which would go through the whole list once
        // more.
        let mut high = match self.heads.get(low) {
            Some(head) if *head == wanted => low + self.heads[low..].partition_point(|head| *head == wanted),
            _ => low,
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if key_at(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The first head of each group.
pub(super) fn firsts_of(heads: &[u64]) -> impl Iterator<Item = u64> {
    heads.iter().step_by(GROUP_LEN).copied()
}

/// How many heads are less than this one; `firsts` has the first of each group.
pub(super) fn heads_below(firsts: &[u64], heads: &[u64], wanted: u64) -> usize {
    let Some(group) = firsts.partition_point(|first| *first < wanted).checked_sub(1) else {
        return 0;
    };
    let start = group * GROUP_LEN;
    let group = &heads[start..heads.len().min(start + GROUP_LEN)];
    start + group.partition_point(|head| *head < wanted)
}

/// The first eight bytes as a number that orders as they do; what is missing counts as zeros.
pub(super) fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(padded)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count_below(keys: &[Vec<u8>], key: &[u8]) -> usize {
        let key_at = |at: usize| keys[at].as_slice();
        AbbreviatedKeys::of(keys.len(), key_at).count_below(key, key_at)
    }

    #[test]
    fn no_keys_and_one_key() {
        assert_eq!(count_below(&[], b"a"), 0);
        assert_eq!(count_below(&[b"b".to_vec()], b"a"), 0);
        assert_eq!(count_below(&[b"b".to_vec()], b"b"), 0);
        assert_eq!(count_below(&[b"b".to_vec()], b"b\0"), 1);
        assert_eq!(count_below(&[b"bcd".to_vec()], b"bc"), 0, "shorter than what all keys share");
    }

    proptest! {
        /// Few different bytes, so that keys share beginnings, end early and differ behind their heads only.
        #[test]
        fn compares_as_the_keys_themselves_do(
            prefix in prop::collection::vec(0u8..3, 0..4),
            rest in prop::collection::btree_set(prop::collection::vec(0u8..3, 0..12), 0..100),
            others in prop::collection::vec(prop::collection::vec(0u8..3, 0..16), 1..40),
        ) {
            let keys: Vec<Vec<u8>> = rest.into_iter().map(|rest| [prefix.as_slice(), &rest].concat()).collect();
            for key in others.iter().chain(&keys) {
                prop_assert_eq!(count_below(&keys, key), keys.partition_point(|one| one < key));
                let key_at = |at: usize| keys[at].as_slice();
                let heads = AbbreviatedKeys::of(keys.len(), key_at);
                for (at, one) in keys.iter().enumerate() {
                    prop_assert_eq!(heads.is_below(at, key, key_at), one < key);
                }
            }
        }

        #[test]
        fn keys_that_fall_do_not_panic(keys in prop::collection::vec(prop::collection::vec(0u8..3, 0..12), 0..20), key: Vec<u8>) {
            prop_assert!(count_below(&keys, &key) <= keys.len());
        }
    }
}
