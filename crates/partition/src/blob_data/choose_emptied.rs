//! Which extents of blob data are emptied: a pure choice over how much of each is still named.
//!
//! Emptying an extent costs what is named in it, so those go first that hold the least; it ends once what is
//! stored is close to what is named. After a split several ranges list an extent, and each names a part of
//! it: a range counts its even share of such an extent as what it stores. So a split copies nothing; where
//! the parts are uneven the smaller one is copied, and the other range then has the extent for itself. What
//! always holds: a choice has a bounded number of bytes and rows to move, and what is worth counting is more
//! than what a choice leaves, so that counting comes to an end.
//!
//! While others write the disk is theirs, and a byte that comes back costs eight that are copied. Once no
//! writer does, what the server keeps back of the disk counts as dead, too: in a small store it is the larger
//! part of what is not alive, and to copy a small store costs little. In a large one it is next to nothing,
//! and so nothing is copied for it.

use stream::ExtentId;

/// Counting is worth it when one stored byte in this many may be dead.
const WORTH_COUNTING_DIVISOR: u64 = 8;
/// A choice is made while more than one stored byte in this many is dead.
const DEAD_SHARE_DIVISOR: u64 = 10;
/// The same two, however much is kept back.
const WORTH_COUNTING_DIVISOR_MAX: u64 = 32;
const DEAD_SHARE_DIVISOR_MAX: u64 = 40;
/// The same two where the disk will soon be full, and where it is: a byte that comes back is worth many that
/// are copied.
const WORTH_COUNTING_DIVISOR_TIGHT: u64 = 24;
const DEAD_SHARE_DIVISOR_TIGHT: u64 = 32;
const WORTH_COUNTING_DIVISOR_SCARCE: u64 = 96;
const DEAD_SHARE_DIVISOR_SCARCE: u64 = 128;
/// But where the disk is full no more than so many bytes are left dead, however much is stored: it may be all
/// that is missing.
const WORTH_COUNTING_BYTES_SCARCE_MAX: u64 = 64 << 20;
const DEAD_BYTES_SCARCE_MAX: u64 = 48 << 20;
/// For these, extents are emptied of which this part is dead: in a large store a little may be dead in each.
const WORTH_EMPTYING_DIVISOR: u64 = 16;
/// Bytes that one collection copies at most.
const COPY_SIZE_BYTES_MAX: u64 = 256 << 20;
/// Rows that one collection rewrites at most.
pub(crate) const MOVED_ROW_COUNT_MAX: usize = 32 << 10;
/// The extent that takes appends is sealed for a collection if this part of a full one is dead.
const OPEN_DEAD_DIVISOR: u64 = 16;

/// How much may stay dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Others may write.
    Busy,
    /// The disk will soon be full.
    Tight,
    /// It is, and nothing is written but deletions.
    Scarce,
    /// Nobody has written or deleted blob data for a while.
    IdleWatch {
        /// What the server keeps back of the disk, this range's share of it.
        kept_back_bytes: u64,
    },
}

impl Pace {
    /// More than so many of the stored bytes have to be dead for a count to be worth it.
    fn worth_counting_bytes(self, stored_bytes: u64) -> u64 {
        match self {
            Pace::Tight => stored_bytes / WORTH_COUNTING_DIVISOR_TIGHT,
            Pace::Scarce => {
                (stored_bytes / WORTH_COUNTING_DIVISOR_SCARCE).min(WORTH_COUNTING_BYTES_SCARCE_MAX)
            }
            _ => self.of(stored_bytes, WORTH_COUNTING_DIVISOR, WORTH_COUNTING_DIVISOR_MAX),
        }
    }

    /// So many of them may be dead after a choice.
    fn left_bytes(self, stored_bytes: u64) -> u64 {
        match self {
            Pace::Tight => stored_bytes / DEAD_SHARE_DIVISOR_TIGHT,
            Pace::Scarce => stored_bytes / DEAD_SHARE_DIVISOR_SCARCE,
            _ => self.of(stored_bytes, DEAD_SHARE_DIVISOR, DEAD_SHARE_DIVISOR_MAX),
        }
    }

    /// Whether space comes before everything else.
    pub(crate) fn is_urgent(self) -> bool {
        matches!(self, Pace::Tight | Pace::Scarce)
    }

    /// As a number that is kept from one collection to the next.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Pace::Busy => 0,
            Pace::IdleWatch { .. } => 1,
            Pace::Tight => 2,
            Pace::Scarce => 3,
        }
    }

    fn of(self, stored_bytes: u64, divisor: u64, divisor_max: u64) -> u64 {
        match self {
            Pace::Busy | Pace::Tight | Pace::Scarce => stored_bytes / divisor,
            Pace::IdleWatch { kept_back_bytes } => {
                (stored_bytes / divisor).saturating_sub(kept_back_bytes).max(stored_bytes / divisor_max)
            }
        }
    }
}

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

    /// What a collection would free.
    pub(crate) fn dead_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.named_bytes)
    }
}

/// What a range counts of an extent that so many ranges list.
pub(crate) fn share_of(length: u64, listed_by: u64) -> u64 {
    length / listed_by.max(1)
}

/// Whether counting what is named may show that space can be freed. `left_dead_bytes` are dead, but a
/// choice leaves them: see [`left_dead_bytes`].
pub(crate) fn is_worth_counting(
    stored_bytes: u64,
    left_dead_bytes: u64,
    named_bytes: u64,
    pace: Pace,
) -> bool {
    let dead_bytes = stored_bytes.saturating_sub(named_bytes).saturating_sub(left_dead_bytes);
    dead_bytes > pace.worth_counting_bytes(stored_bytes)
}

/// The dead bytes in an extent that takes appends, if they are too few for it to be sealed.
pub(crate) fn left_dead_bytes(open: &CountedExtent, extent_size_bytes_max: u64) -> u64 {
    let dead_bytes = open.dead_bytes();
    if dead_bytes < open_dead_bytes_min(extent_size_bytes_max) { dead_bytes } else { 0 }
}

fn open_dead_bytes_min(extent_size_bytes_max: u64) -> u64 {
    (extent_size_bytes_max / OPEN_DEAD_DIVISOR).max(1)
}

/// Chooses what is emptied.
pub(crate) fn choose_emptied(
    counted: &[CountedExtent],
    extent_size_bytes_max: u64,
    pace: Pace,
) -> Vec<CountedExtent> {
    let mut stored_bytes: u64 = counted.iter().map(|one| one.size_bytes).sum();
    let open_dead_min = open_dead_bytes_min(extent_size_bytes_max);
    let mut candidates: Vec<CountedExtent> =
        counted.iter().copied().filter(|one| !one.is_open || one.dead_bytes() >= open_dead_min).collect();
    // What is left in the open extent is not counted here: others would be copied for it.
    let mut dead_bytes: u64 = candidates.iter().map(CountedExtent::dead_bytes).sum();
    candidates.sort_by_key(|one| {
        let permille = u128::from(one.named_bytes) * 1000 / u128::from(one.size_bytes.max(1));
        (permille, one.extent)
    });
    let (mut copied_bytes, mut moved_rows) = (0, 0);
    let mut chosen = Vec::new();
    for one in candidates {
        if one.named_bytes > 0 {
            let is_clean_enough = dead_bytes <= pace.left_bytes(stored_bytes)
                && !(pace == Pace::Scarce
                    && dead_bytes > DEAD_BYTES_SCARCE_MAX
                    && one.dead_bytes() >= one.size_bytes / WORTH_EMPTYING_DIVISOR);
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
        chosen_at(Pace::Busy, extents)
    }

    fn chosen_at(pace: Pace, extents: &[(u64, u64)]) -> Vec<u64> {
        choose_emptied(&counted(extents), FULL, pace).iter().map(|one| one.extent.0).collect()
    }

    /// A hundredth of a large store is more than what is missing on a full disk.
    #[test]
    fn on_a_full_disk_few_bytes_are_left_dead_however_much_is_stored() {
        const GIB: u64 = 1 << 30;
        assert!(!is_worth_counting(900 * GIB, 0, 895 * GIB, Pace::Tight));
        assert!(is_worth_counting(900 * GIB, 0, 895 * GIB, Pace::Scarce));
        assert!(!is_worth_counting(900 * GIB, 0, 900 * GIB - (60 << 20), Pace::Scarce));
        let mut store = vec![(GIB, GIB); 100];
        store[3].1 = GIB - GIB / 16;
        store[7].1 = GIB - (40 << 20);
        store[9].1 = 0;
        assert_eq!(chosen_at(Pace::Scarce, &store), [9, 3], "and little for what is dead in each");
        assert_eq!(chosen_at(Pace::Tight, &store), [9]);
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
            !choose_emptied(&[one], FULL, Pace::Busy).is_empty()
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
        assert_eq!(choose_emptied(&many, 2 * size_bytes, Pace::Busy).len(), 2);
        many.iter_mut().for_each(|one| one.named_rows = MOVED_ROW_COUNT_MAX);
        assert_eq!(choose_emptied(&many, 2 * size_bytes, Pace::Busy).len(), 1);
    }

    #[test]
    fn in_quiet_a_small_store_is_cleaned_for_what_is_kept_back_and_a_large_one_is_not() {
        let idle = |kept_back_bytes| Pace::IdleWatch { kept_back_bytes };
        let extents = [(1000, 920), (1000, 940), (1000, 1000), (10, 10)];
        assert_eq!(chosen(&extents), [] as [u64; 0], "140 of 3010 are less than a tenth");
        assert_eq!(chosen_at(idle(100), &extents), [] as [u64; 0], "140 and 100 are still");
        assert_eq!(chosen_at(idle(200), &extents), [0], "then 60 and 200 are");
        assert_eq!(chosen_at(idle(1000), &extents), [0], "a fortieth may be dead whatever is kept back");
        assert_eq!(chosen_at(idle(1000), &[(1000, 900), (1000, 900), (10, 10)]), [0, 1]);
        assert!(is_worth_counting(3000, 0, 2900, idle(1000)), "a thirtieth is dead");
        assert!(!is_worth_counting(3000, 0, 2910, idle(1000)), "and a thirty-third");
        assert!(!is_worth_counting(3000, 0, 2900, idle(200)) && is_worth_counting(3000, 0, 2800, idle(200)));
        assert!(
            !is_worth_counting(3000, 0, 2800, Pace::Busy) && is_worth_counting(3000, 0, 2600, Pace::Busy)
        );
    }

    #[test]
    fn what_is_dead_in_the_open_extent_is_left_while_it_is_little() {
        let open = |size_bytes, named_bytes| CountedExtent {
            named_bytes,
            is_open: true,
            ..CountedExtent::new(ExtentId(1), size_bytes, 1)
        };
        assert_eq!(left_dead_bytes(&open(500, 440), FULL), 60);
        assert_eq!(left_dead_bytes(&open(500, 430), FULL), 0, "a sixteenth of a full extent");
        let idle = Pace::IdleWatch { kept_back_bytes: 1000 };
        assert_eq!(chosen_at(idle, &[(1000, 990), (60, 0)]), [] as [u64; 0], "nor is another copied for it");
        assert!(is_worth_counting(400, 0, 340, Pace::Busy));
        assert!(!is_worth_counting(400, 60, 340, Pace::Busy), "it is what was left");
    }

    fn any_pace() -> impl Strategy<Value = Pace> {
        prop_oneof![
            Just(Pace::Busy),
            Just(Pace::Tight),
            Just(Pace::Scarce),
            (0u64..2 * FULL).prop_map(|kept_back_bytes| Pace::IdleWatch { kept_back_bytes })
        ]
    }

    proptest! {
        /// Else a range would be counted again and again for nothing.
        #[test]
        fn what_is_worth_counting_is_worth_a_choice(
            extents in prop::collection::vec((0u64..=FULL, 0u64..=100), 1..8),
            pace in any_pace(),
        ) {
            let extents: Vec<(u64, u64)> = extents.into_iter().map(|(size, share)| (size, size * share / 100)).collect();
            let stored = extents.iter().map(|(size, _)| size).sum();
            let named = extents.iter().map(|(_, named)| named).sum();
            let counted = counted(&extents);
            let left = left_dead_bytes(&counted[counted.len() - 1], FULL);
            if is_worth_counting(stored, left, named, pace) {
                prop_assert!(!choose_emptied(&counted, FULL, pace).is_empty());
            }
        }
    }
}
