//! Which extents of one checkpoint are emptied on a full disk when its overflows lie scattered over them: a
//! pure choice over what each extent holds.
//!
//! Rows are moved in key order, part by part, and an extent goes once all its overflows have moved. Where
//! compactions have left overflows in place, each extent has keys of the whole range: none goes before nearly
//! all are written anew, which a full disk has no room for. Then the deadest extents are emptied instead, as
//! a log-structured file system cleans segments: the heads of all rows are written anew, and of overflows
//! only those in the victims. What always holds: what is written fits the room, and more is freed.

use super::choose_shared_overflow::OverflowExtent;
use std::collections::BTreeSet;
use stream::ExtentId;

/// An extent is emptied if one byte in so many of it is dead, at least.
const DEAD_SHARE_DIVISOR: u64 = 16;

/// An extent, and where a walk in key order is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassedExtent {
    pub(crate) size_bytes: u64,
    /// Bytes that are written until its last overflow is.
    pub(crate) written_bytes: u64,
}

/// Bytes that rewriting in key order takes at its worst, beyond what it has freed by then.
pub(crate) fn peak_bytes(extents: impl Iterator<Item = PassedExtent>) -> u64 {
    let mut passed: Vec<PassedExtent> = extents.collect();
    passed.sort_by_key(|one| one.written_bytes);
    let (mut peak_bytes, mut freed_bytes) = (0, 0u64);
    for one in passed {
        peak_bytes = one.written_bytes.saturating_sub(freed_bytes).max(peak_bytes);
        freed_bytes += one.size_bytes;
    }
    peak_bytes
}

/// The extents whose overflows stay where they are, if it is worth writing `head_bytes` and the overflows of
/// the others anew. That takes `room_bytes` at most and frees `gain_min_bytes` more than it takes.
pub(crate) fn choose_left_of_victims(
    extents: &[OverflowExtent],
    head_bytes: u64,
    room_bytes: u64,
    gain_min_bytes: u64,
) -> Option<BTreeSet<ExtentId>> {
    let dead_bytes = |one: &OverflowExtent| one.size_bytes.saturating_sub(one.kept_bytes);
    let mut by_deadness = extents.to_vec();
    // The least kept for what comes back first, exactly.
    let ratio = |one: &OverflowExtent| (u128::from(one.kept_bytes) << 32) / u128::from(one.size_bytes.max(1));
    by_deadness.sort_by_key(|one| (ratio(one), one.extent));
    let (mut written_bytes, mut given_back_bytes) = (head_bytes, 0);
    let mut left = BTreeSet::new();
    for one in by_deadness {
        let is_dead_enough = dead_bytes(&one) >= one.size_bytes / DEAD_SHARE_DIVISOR;
        if is_dead_enough && written_bytes + one.kept_bytes <= room_bytes {
            written_bytes += one.kept_bytes;
            given_back_bytes += one.size_bytes;
        } else if one.kept_bytes > 0 {
            left.insert(one.extent);
        }
    }
    (written_bytes <= room_bytes && given_back_bytes >= written_bytes + gain_min_bytes).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_key_order_extents_of_neighbours_go_early_and_scattered_ones_at_the_end() {
        let peak = |extents: &[(u64, u64)]| {
            let passed =
                extents.iter().map(|&(size_bytes, written_bytes)| PassedExtent { size_bytes, written_bytes });
            peak_bytes(passed)
        };
        assert_eq!(peak(&[]), 0);
        // Half of each is kept.
        assert_eq!(peak(&[(100, 50), (100, 100), (100, 150)]), 50);
        assert_eq!(peak(&[(100, 150), (100, 149), (100, 148)]), 148);
        assert_eq!(peak(&[(100, 120), (10, 50), (100, 150)]), 110);
    }

    fn extent(number: u64, size_bytes: u64, kept_bytes: u64) -> OverflowExtent {
        OverflowExtent { extent: ExtentId(number), size_bytes, kept_bytes }
    }

    fn left(extents: &[OverflowExtent], head_bytes: u64, room_bytes: u64, gain_min: u64) -> Option<Vec<u64>> {
        let left = choose_left_of_victims(extents, head_bytes, room_bytes, gain_min)?;
        Some(left.into_iter().map(|extent| extent.0).collect())
    }

    #[test]
    fn the_deadest_extents_that_fit_are_emptied() {
        let extents = [extent(1, 100, 60), extent(2, 100, 20), extent(3, 100, 100), extent(4, 100, 0)];
        assert_eq!(left(&extents, 10, 1000, 0), Some(vec![3]), "what is not dead stays");
        assert_eq!(left(&extents, 10, 80, 0), Some(vec![1, 3]), "what does not fit stays");
        assert_eq!(left(&extents, 10, 10, 0), Some(vec![1, 2, 3]), "one that keeps nothing goes");
        assert_eq!(left(&extents, 10, 9, 0), None, "the heads do not fit");
        assert_eq!(left(&extents, 10, 80, 170), Some(vec![1, 3]), "200 come back for 30");
        assert_eq!(left(&extents, 10, 80, 171), None);
        assert_eq!(left(&[], 0, 80, 1), None);
    }

    #[test]
    fn a_few_dead_bytes_are_not_worth_an_extent() {
        assert_eq!(left(&[extent(1, 1600, 1500), extent(2, 1600, 1501)], 0, 9000, 1), Some(vec![2]));
    }
}
