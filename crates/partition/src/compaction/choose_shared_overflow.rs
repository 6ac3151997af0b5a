//! Which extents a merge leaves alone because nearly all of what they hold are overflows that it keeps: a
//! pure choice over what they hold and what of it is kept.
//!
//! A merge then writes the heads of rows anew and shares those extents, so that the content of small blobs is
//! not written again by each merge. What always holds: of an extent that is left, little is dead; and a
//! checkpoint lists few extents for its size, so that neighbours among its overflows lie in few places.

use std::collections::BTreeSet;
use stream::ExtentId;

/// An extent is left if no more than one part in so many of it goes. That includes the heads of its rows,
/// which are written anew, with index and filter.
const DEAD_SHARE_DIVISOR: u64 = 8;
/// Extents that are left have one part in so many, or more, of the bytes that are merged: a walk over
/// overflows in the order of rows goes back and forth between so many extents at most. And each extent is an
/// open file.
const EXTENT_SHARE_DIVISOR: u64 = 64;
/// But one part in so many of what the largest extents have is always enough: that is how overflows would lie
/// that are written anew.
const LARGE_EXTENT_DIVISOR: u64 = 4;

/// An extent with overflows of rows that are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverflowExtent {
    pub(crate) extent: ExtentId,
    /// Bytes that it has.
    pub(crate) size_bytes: u64,
    /// Bytes of its overflows that the merge keeps.
    pub(crate) kept_bytes: u64,
}

/// Whether looking at each row may show an extent that can be left, where merged checkpoints have so many
/// bytes, those of overflows among them.
pub(crate) fn is_worth_counting(size_bytes: u64, overflow_size_bytes: u64) -> bool {
    overflow_size_bytes > 0 && overflow_size_bytes >= size_bytes / 2
}

/// What an extent must have, at least, to be left when checkpoints of `compacted_bytes` are merged.
pub(crate) fn size_bytes_min(compacted_bytes: u64, extent_size_bytes_max: u64) -> u64 {
    (compacted_bytes / EXTENT_SHARE_DIVISOR).min(extent_size_bytes_max / LARGE_EXTENT_DIVISOR)
}

/// The extents, each large enough, whose overflows stay where they are.
pub(crate) fn choose_shared_overflow(extents: impl Iterator<Item = OverflowExtent>) -> BTreeSet<ExtentId> {
    let stays = |one: &OverflowExtent| {
        let dead_bytes = one.size_bytes.saturating_sub(one.kept_bytes);
        one.kept_bytes > 0 && dead_bytes <= one.size_bytes / DEAD_SHARE_DIVISOR
    };
    extents.filter(stays).map(|one| one.extent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_stay_that_are_nearly_all_kept() {
        for (size_bytes, kept_bytes, stays) in [
            (800, 800, true),
            (800, 700, true),
            (800, 699, false),
            (800, 0, false),
            (0, 0, false),
            // Where an overflow is counted for two rows.
            (800, 1600, true),
        ] {
            let one = OverflowExtent { extent: ExtentId(5), size_bytes, kept_bytes };
            let left = choose_shared_overflow([one].into_iter());
            assert_eq!(left.contains(&ExtentId(5)), stays, "{kept_bytes} of {size_bytes}");
        }
    }

    #[test]
    fn a_checkpoint_lists_few_extents_for_its_size() {
        assert_eq!(size_bytes_min(6400, 1 << 20), 100);
        assert_eq!(size_bytes_min(0, 1 << 20), 0);
        assert_eq!(size_bytes_min(1 << 40, 1000), 250, "large extents stay however much is merged");
    }

    #[test]
    fn rows_without_long_overflows_are_not_counted() {
        assert!(!is_worth_counting(1000, 0));
        assert!(!is_worth_counting(0, 0));
        assert!(!is_worth_counting(1000, 499));
        assert!(is_worth_counting(1000, 500));
    }
}
