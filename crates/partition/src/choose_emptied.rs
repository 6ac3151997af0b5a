//! Which extents of blob data are emptied: a pure choice over how much of each is still named.
//!
//! Emptying an extent costs what is named in it, so those go first that hold the least; it ends once what is stored is
//! close to what is named. After a split several ranges list an extent, and each names a part of it: a range counts its
//! even share of such an extent as what it stores. So a split copies nothing; where the parts are uneven the smaller one
//! is copied, and the other range then has the extent for itself. What always holds: a choice has a bounded number of
//! bytes and rows to move, and what is worth counting is more than what a choice leaves, so that counting comes to an
//! end.

use stream::ExtentId;

/// Counting is worth it when one stored byte in this many may be dead.
const WORTH_COUNTING_DIVISOR: u64 = 8;
/// A choice is made while more than one stored byte in this many is dead.
const DEAD_SHARE_DIVISOR: u64 = 10;
/// Bytes that one collection copies at most.
const COPY_SIZE_BYTES_MAX: u64 = 256 << 20;
/// Rows that one collection rewrites at most.
pub(crate) const MOVED_ROW_COUNT_MAX: usize = 32 << 10;
/// The extent that takes appends is sealed for a collection if this part of a full one is dead.
const OPEN_DEAD_DIVISOR: u64 = 16;

/// What is known of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountedExtent {
    pub(crate) extent: ExtentId,
    /// The range's share of its bytes.
    pub(crate) size_bytes: u64,
    /// Of these rows name so many.
    pub(crate) named_bytes: u64,
    /// So many rows name them.
    pub(crate) named_rows: usize,
    /// It is the stream's last one.
    pub(crate) is_open: bool,
}

impl CountedExtent {
    /// An extent of `length` bytes that so many ranges list, before anything is counted.
    pub(crate) fn new(extent: ExtentId, length: u64, listed_by: u64) -> Self {
        let size_bytes = share_of(length, listed_by);
        CountedExtent { extent, size_bytes, named_bytes: 0, named_rows: 0, is_open: false }
    }

    fn dead_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.named_bytes)
    }
}

/// What a range counts of an extent that so many ranges list.
pub(crate) fn share_of(length: u64, listed_by: u64) -> u64 {
    length / listed_by.max(1)
}

/// Whether counting what is named may show that space can be given back. `open_size_bytes` of the stored bytes are in the
/// extent that takes appends, which has `extent_size_bytes_max` when it is full.
pub(crate) fn is_worth_counting(
    stored_bytes: u64,
    open_size_bytes: u64,
    named_bytes: u64,
    extent_size_bytes_max: u64,
) -> bool {
    let left_alone =
        if open_size_bytes < extent_size_bytes_max / OPEN_DEAD_DIVISOR { open_size_bytes } else { 0 };
    let dead_bytes = stored_bytes.saturating_sub(left_alone).saturating_sub(named_bytes);
    dead_bytes > 0 && dead_bytes >= stored_bytes / WORTH_COUNTING_DIVISOR
}

/// Chooses what is emptied.
pub(crate) fn choose_emptied(counted: &[CountedExtent], extent_size_bytes_max: u64) -> Vec<CountedExtent> {
    let mut stored_bytes: u64 = counted.iter().map(|one| one.size_bytes).sum();
    let mut dead_bytes: u64 = counted.iter().map(CountedExtent::dead_bytes).sum();
    let open_dead_min = (extent_size_bytes_max / OPEN_DEAD_DIVISOR).max(1);
    let mut candidates: Vec<CountedExtent> =
        counted.iter().copied().filter(|one| !one.is_open || one.dead_bytes() >= open_dead_min).collect();
    candidates.sort_by_key(|one| {
        let permille = u128::from(one.named_bytes) * 1000 / u128::from(one.size_bytes.max(1));
        (permille, one.extent)
    });
    let (mut copied_bytes, mut moved_rows) = (0, 0);
    let mut chosen = Vec::new();
    for one in candidates {
        if one.named_bytes > 0 {
            let is_clean_enough = dead_bytes <= stored_bytes / DEAD_SHARE_DIVISOR;
            let is_too_much = copied_bytes + one.named_bytes > COPY_SIZE_BYTES_MAX
                || moved_rows + one.named_rows > MOVED_ROW_COUNT_MAX;
            // One alone is never too much: what it takes is spread over several collections.
            if is_clean_enough || one.dead_bytes() == 0 || (is_too_much && copied_bytes > 0) {
                break;
            }
        }
        copied_bytes += one.named_bytes;
        moved_rows += one.named_rows;
        stored_bytes -= one.dead_bytes();
        dead_bytes -= one.dead_bytes();
        chosen.push(one);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FULL: u64 = 1000;

    fn counted(extents: &[(u64, u64)]) -> Vec<CountedExtent> {
        let last = extents.len() - 1;
        let counted = extents.iter().enumerate().map(|(index, (size_bytes, named_bytes))| CountedExtent {
            extent: ExtentId(index as u64),
            size_bytes: *size_bytes,
            named_bytes: *named_bytes,
            named_rows: usize::from(*named_bytes > 0),
            is_open: index == last,
        });
        counted.collect()
    }

    fn chosen(extents: &[(u64, u64)]) -> Vec<u64> {
        choose_emptied(&counted(extents), FULL).iter().map(|one| one.extent.0).collect()
    }

    #[test]
    fn the_deadest_go_until_little_is_dead() {
        assert_eq!(chosen(&[(1000, 1000), (10, 10)]), [] as [u64; 0], "nothing is dead");
        assert_eq!(chosen(&[(1000, 0), (1000, 950), (10, 10)]), [0], "what nobody names costs nothing");
        assert_eq!(chosen(&[(1000, 600), (1000, 300), (1000, 1000), (10, 10)]), [1, 0]);
        assert_eq!(
            chosen(&[(1000, 900), (1000, 800), (1000, 1000), (10, 10)]),
            [] as [u64; 0],
            "a tenth is dead"
        );
        assert_eq!(chosen(&[(1000, 0), (500, 0)]), [0, 1], "the last one, too, if there is much to win");
        assert_eq!(chosen(&[(1000, 0), (50, 0)]), [0], "but not for a little");
    }

    #[test]
    fn of_an_extent_that_two_ranges_list_the_smaller_part_is_copied() {
        let choose = |named_bytes, listed_by| {
            let one = CountedExtent { named_bytes, ..CountedExtent::new(ExtentId(1), 1000, listed_by) };
            !choose_emptied(&[one], FULL).is_empty()
        };
        assert!(!choose(500, 2), "a split in the middle");
        assert!(choose(200, 2) && !choose(800, 2), "the smaller part, not the larger");
        assert!(choose(300, 2), "less than both name together is dead");
        assert!(!choose(950, 1) && choose(500, 1));
    }

    #[test]
    fn a_choice_has_a_bounded_number_of_bytes_and_rows_to_move() {
        let size_bytes = COPY_SIZE_BYTES_MAX / 2;
        let mut many = counted(&[(2 * size_bytes, size_bytes); 10]);
        assert_eq!(choose_emptied(&many, 2 * size_bytes).len(), 2);
        many.iter_mut().for_each(|one| one.named_rows = MOVED_ROW_COUNT_MAX);
        assert_eq!(choose_emptied(&many, 2 * size_bytes).len(), 1);
    }

    proptest! {
        /// Else a range would be counted again and again for nothing.
        #[test]
        fn what_is_worth_counting_is_worth_a_choice(extents in prop::collection::vec((0u64..=FULL, 0u64..=100), 1..8)) {
            let extents: Vec<(u64, u64)> = extents.into_iter().map(|(size, share)| (size, size * share / 100)).collect();
            let stored = extents.iter().map(|(size, _)| size).sum();
            let named = extents.iter().map(|(_, named)| named).sum();
            let open = extents[extents.len() - 1];
            let is_worth = is_worth_counting(stored, open.0, named, FULL);
            // What is dead in the open extent is left alone while it is little.
            if is_worth && open.0 == open.1 {
                prop_assert!(!chosen(&extents).is_empty());
            }
        }
    }
}
