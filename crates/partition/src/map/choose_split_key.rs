//! Where to split a range: a pure choice over keys with weights, be they sampled requests or blocks of rows.
//!
//! What always holds: a split key is a whole partition name's first key, and both sides get a fair share of
//! the weight; else there is no key, because a split would not help.

use crate::key::{KeyRange, partition_prefix};
use bytes::Bytes;

/// Each side of a split gets at least one part in this many of the weight.
const SHARE_MIN_DIVISOR: u64 = 8;

/// The partition name's first key that parts the weight most evenly; `None` if no key parts it well enough.
pub(crate) fn choose_split_key(mut weighted: Vec<(Bytes, u64)>, range: &KeyRange) -> Option<Bytes> {
    weighted.retain(|(key, _)| range.contains(key));
    weighted.sort();
    let total: u64 = weighted.iter().map(|(_, weight)| weight).sum();
    let mut best: Option<(u64, Bytes)> = None;
    let (mut left, mut before): (u64, &[u8]) = (0, &[]);
    for (key, weight) in &weighted {
        let Some(prefix) = partition_prefix(key) else { continue };
        let smaller_side = left.min(total - left);
        let fair = left > 0 && smaller_side >= total.div_ceil(SHARE_MIN_DIVISOR);
        if prefix != before && prefix > range.start.as_ref() && fair {
            let better = best.as_ref().is_none_or(|(side, _)| smaller_side > *side);
            if better {
                best = Some((smaller_side, key.slice(..prefix.len())));
            }
        }
        left += weight;
        before = prefix;
    }
    best.map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RowKey;
    use proptest::prelude::*;

    fn row(partition: &str, name: &str) -> Bytes {
        RowKey::new("a", 1, partition, name).as_bytes().clone()
    }

    fn start_of(partition: &str) -> Option<Bytes> {
        Some(KeyRange::partition("a", 1, partition).start)
    }

    #[test]
    fn the_weight_is_parted_evenly_between_whole_partition_names() {
        let all = KeyRange::all();
        let keys = |weights: &[(&str, u64)]| {
            weights.iter().map(|(partition, weight)| (row(partition, "r"), *weight)).collect::<Vec<_>>()
        };
        assert_eq!(choose_split_key(Vec::new(), &all), None);
        assert_eq!(choose_split_key(keys(&[("p", 9)]), &all), None, "one partition name");
        assert_eq!(choose_split_key(keys(&[("p", 5), ("q", 5)]), &all), start_of("q"));
        assert_eq!(choose_split_key(keys(&[("r", 1), ("q", 4), ("p", 5)]), &all), start_of("q"), "unsorted");
        assert_eq!(choose_split_key(keys(&[("p", 1), ("q", 100), ("r", 1)]), &all), None, "one holds it all");
        let inside = KeyRange { start: start_of("p").unwrap(), end: start_of("r") };
        assert_eq!(
            choose_split_key(keys(&[("a", 50), ("p", 5), ("q", 5), ("z", 70)]), &inside),
            start_of("q"),
            "keys of neighbours don't count"
        );
    }

    proptest! {
        #[test]
        fn no_partition_name_is_cut(rows in prop::collection::vec(("[a-d]{1,2}", "[a-z]{0,2}", 0u64..100), 0..40)) {
            let weighted: Vec<_> =
                rows.iter().map(|(partition, name, weight)| (row(partition, name), *weight)).collect();
            if let Some(at) = choose_split_key(weighted.clone(), &KeyRange::all()) {
                prop_assert_eq!(partition_prefix(&at), Some(at.as_ref()));
                let total: u64 = weighted.iter().map(|(_, weight)| weight).sum();
                let left: u64 = weighted.iter().filter(|(key, _)| *key < at).map(|(_, weight)| weight).sum();
                prop_assert!(left.min(total - left) * SHARE_MIN_DIVISOR >= total);
            }
        }
    }
}
