//! Which checkpoints to merge, and how much a merge gives way meanwhile: pure choices over their sizes and
//! their number.
//!
//! Size-tiered: adjacent checkpoints of similar size are merged, so that each byte is rewritten about once
//! for each growth by their count, and the number of checkpoints a read must ask stays small. Where rows
//! replace older ones, a merge takes larger neighbours along sooner, because what was replaced goes with it,
//! and a tombstone counts as what it deletes.
//! Only neighbours in age may be merged: otherwise an older change could hide a newer one.

use crate::compaction::counts::{Counts, mean_row_bytes};
use std::ops::Range;

/// Checkpoints that are merged at once at most, which bounds the readers a merge holds open.
pub(super) const COMPACTION_COUNT_MAX: usize = 32;
/// A checkpoint joins a merge if it is at most this many times as large as the largest of the newer ones in
/// it.
const SIMILAR_SIZE_FACTOR: u64 = 2;
/// Rows are replaced if merges drop one in so many, or more.
const REPLACED_SHARE_DIVISOR: u64 = 10;
/// More checkpoints than this many times the count that is merged are merged whatever their sizes.
const CHECKPOINT_COUNT_FACTOR: usize = 3;

/// What the rows of a range do to older ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowsMostly {
    /// They stand beside them: a merge makes checkpoints fewer, and else moves bytes for nothing.
    Added,
    /// They replace or delete them: a compaction frees space. Also where it is unknown, as after a start.
    Replaced,
}

/// What a compaction reports of the rows that it `read`, of which it kept some.
pub(crate) fn rows_of_compaction(read: u64, kept: u64) -> RowsMostly {
    let dropped = read.saturating_sub(kept);
    if dropped > 0 && dropped >= read / REPLACED_SHARE_DIVISOR {
        RowsMostly::Replaced
    } else {
        RowsMostly::Added
    }
}

/// So many times what is merged at once a range has when merges keep up, in quarters: the newest, and those
/// that make up the larger ones.
const KEPT_UP_QUARTERS: usize = 9;
/// Row blocks that a merge in haste writes before it gives way, at most: it keeps a core from others for
/// about a millisecond.
const STRIDE_BLOCK_COUNT_MAX: u32 = 64;

/// How many row blocks a merge writes before it gives way to requests, if the range with something to merge
/// that has the most checkpoints has so many. One, as long as merges keep up. Every further checkpoint costs
/// every look-up for a missing row a look into its filter, so merges that fall behind take more and more of
/// the processor, until writers are slow enough for them.
pub(crate) fn blocks_before_giving_way(checkpoint_count: usize, count_min: usize) -> u32 {
    let quarters = checkpoint_count * 4 / count_min.max(1);
    let doublings = quarters.saturating_sub(KEPT_UP_QUARTERS).min(u32::BITS as usize - 1);
    (1 << doublings).min(STRIDE_BLOCK_COUNT_MAX)
}

/// When idle a merge may be of so many times fewer checkpoints.
const IDLE_COUNT_DIVISOR: usize = 5;

/// How many similar neighbours are worth an idle compaction, which delays no other work. Then each byte is
/// written once more for each doubling.
pub(crate) fn idle_count_min(count_min: usize) -> usize {
    (count_min / IDLE_COUNT_DIVISOR).max(2)
}

/// Chooses among checkpoints, newest first, which run to merge, if any: `count_min` similar neighbours.
pub(crate) fn choose_compaction(
    newest_first: &[Counts],
    rows: RowsMostly,
    count_min: usize,
) -> Option<Range<usize>> {
    let sizes = Sizes::of(newest_first, rows);
    let similar = |start| sizes.similar_run(start, COMPACTION_COUNT_MAX);
    let first = (0..newest_first.len()).map(similar).find(|run| run.len() >= count_min);
    first.or_else(|| sizes.choose_any(count_min))
}

/// Chooses among all runs worth merging the one with the fewest bytes: where there is no room for the one
/// that [`choose_compaction`] prefers, it must not keep those away that have some.
pub(crate) fn choose_cheapest_compaction(
    newest_first: &[Counts],
    rows: RowsMostly,
    count_min: usize,
) -> Option<Range<usize>> {
    let sizes = Sizes::of(newest_first, rows);
    let shortest = |start| sizes.similar_run(start, count_min);
    let similar = (0..newest_first.len()).map(shortest).filter(|run| run.len() >= count_min);
    let cheapest = similar.min_by_key(|run| sizes.stored[run.clone()].iter().sum::<u64>());
    cheapest.or_else(|| sizes.choose_any(count_min))
}

/// A merge lets others go first that take at most one part in so many of what it takes itself. Others of its
/// size would come due again and again and keep it from its end; and one that is ten times as large must not
/// begin in the middle of it.
const FIRST_SIZE_DIVISOR: u64 = 4;

/// Bytes that a merge may take which goes before the rest of one that takes `interrupted_bytes`. So of merges
/// that interrupt each other there are few, each much smaller than the one it interrupts.
pub(crate) fn size_bytes_before(interrupted_bytes: u64) -> u64 {
    interrupted_bytes / FIRST_SIZE_DIVISOR
}

/// Sizes of checkpoints, newest first.
struct Sizes {
    stored: Vec<u64>,
    /// With the bytes of what a checkpoint's tombstones delete, roughly: a small one of many tombstones is
    /// compacted with as much as it deletes (RocksDB's compensated size).
    compensated: Vec<u64>,
    rows: RowsMostly,
}

impl Sizes {
    fn of(newest_first: &[Counts], rows: RowsMostly) -> Self {
        let row_bytes = mean_row_bytes(newest_first);
        let compensated = |counts: &Counts| {
            counts.size_bytes.saturating_add(counts.deleted_count.saturating_mul(row_bytes))
        };
        Sizes {
            stored: newest_first.iter().map(|counts| counts.size_bytes).collect(),
            compensated: newest_first.iter().map(compensated).collect(),
            rows,
        }
    }

    /// The longest run from `start` on of similar sizes, of at most `count_max`. Where rows are replaced, a
    /// checkpoint that is no larger than all the newer ones together and what they delete is similar too.
    fn similar_run(&self, start: usize, count_max: usize) -> Range<usize> {
        let sizes = &self.stored;
        let mut end = start + 1;
        let mut total = self.compensated[start];
        while end < sizes.len() && end - start < count_max {
            let largest_newer = sizes[start..end].iter().copied().max().unwrap_or(0);
            let joins = match self.rows {
                RowsMostly::Added => false,
                RowsMostly::Replaced => sizes[end] <= total,
            };
            if !joins && sizes[end] > largest_newer.saturating_mul(SIMILAR_SIZE_FACTOR) {
                break;
            }
            total = total.saturating_add(self.compensated[end]);
            end += 1;
        }
        start..end
    }

    /// With no run of similar sizes: the cheapest run that brings the number down, if that is large.
    fn choose_any(&self, count_min: usize) -> Option<Range<usize>> {
        let sizes = &self.stored;
        if sizes.len() <= count_min * CHECKPOINT_COUNT_FACTOR {
            return None;
        }
        let width = count_min.min(sizes.len());
        let cost = |start: &usize| sizes[*start..*start + width].iter().sum::<u64>();
        (0..=sizes.len() - width).min_by_key(cost).map(|start| start..start + width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use RowsMostly::{Added, Replaced};

    /// Checkpoints without tombstones.
    fn sized(sizes: &[u64]) -> Vec<Counts> {
        sizes.iter().map(|size| Counts { size_bytes: *size, row_count: 1, deleted_count: 0 }).collect()
    }

    #[test]
    fn similar_neighbours_are_merged() {
        for rows in [Added, Replaced] {
            assert_eq!(choose_compaction(&sized(&[]), rows, 4), None);
            assert_eq!(choose_compaction(&sized(&[10, 10, 10]), rows, 4), None);
            assert_eq!(choose_compaction(&sized(&[10, 10, 10, 10]), rows, 4), Some(0..4));
            assert_eq!(choose_compaction(&sized(&[10, 20, 40, 80, 1000]), rows, 4), Some(0..4));
            assert_eq!(choose_compaction(&sized(&[10, 10, 10, 10, 1000]), rows, 4), Some(0..4));
            assert_eq!(choose_compaction(&sized(&[10, 1000, 1000, 1000, 1000]), rows, 4), Some(1..5));
            assert_eq!(choose_compaction(&sized(&[10, 1000, 100_000]), rows, 4), None);
        }
    }

    #[test]
    fn a_larger_neighbour_is_taken_along_where_that_gives_space_back() {
        for (sizes, added, replaced) in [
            ([10, 10, 10, 10, 40].as_slice(), Some(0..4), Some(0..5)),
            (&[10, 10, 10, 10, 41], Some(0..4), Some(0..4)),
            (&[10, 10, 10, 10, 40, 80, 160, 320], Some(0..4), Some(0..8)),
            (&[10, 10, 10, 30], None, Some(0..4)),
        ] {
            assert_eq!(choose_compaction(&sized(sizes), Added, 4), added, "{sizes:?}");
            assert_eq!(choose_compaction(&sized(sizes), Replaced, 4), replaced, "{sizes:?}");
        }
    }

    #[test]
    fn merges_tell_whether_rows_are_replaced() {
        for (read, kept, expected) in [
            (0, 0, Added),
            (1000, 1000, Added),
            (1000, 901, Added),
            (1000, 900, Replaced),
            (1000, 0, Replaced),
            (5, 4, Replaced),
            // What is not in this range does not count as kept, and never more than was read.
            (1000, 1001, Added),
        ] {
            assert_eq!(rows_of_compaction(read, kept), expected, "{kept} of {read}");
        }
    }

    #[test]
    fn too_many_of_any_size_are_merged_cheaply() {
        let sizes: Vec<u64> = (0..13).map(|exponent| 10u64.pow(exponent)).collect();
        assert_eq!(choose_compaction(&sized(&sizes), Added, 4), Some(0..4));
    }

    /// A large run that had no room once kept all others from being merged.
    #[test]
    fn where_a_large_run_has_no_room_the_cheapest_is_merged() {
        for (sizes, preferred, cheapest) in [
            (vec![10, 10, 10], None, None),
            (vec![10, 10, 10, 10], Some(0..4), Some(0..4)),
            (vec![10, 10, 10, 10, 10, 10], Some(0..6), Some(0..4)),
            (vec![900, 900, 900, 900, 5, 5, 5, 5, 800], Some(0..9), Some(4..8)),
            (vec![1, 900, 900, 900, 900, 40_000, 40_000, 40_000], Some(1..5), Some(1..5)),
            (vec![900, 5, 900, 5, 5, 7], Some(0..6), Some(2..6)),
            // None are similar, but there are many.
            ((0..13).map(|exponent| 10u64.pow(exponent)).collect(), Some(0..4), Some(0..4)),
        ] {
            assert_eq!(choose_compaction(&sized(&sizes), Replaced, 4), preferred, "{sizes:?}");
            assert_eq!(choose_cheapest_compaction(&sized(&sizes), Replaced, 4), cheapest, "{sizes:?}");
        }
    }

    /// Merges of one size used to make way for each other for as long as much was written, and ten times as
    /// large a one began in the middle of them, which made way for none.
    #[test]
    fn a_merge_makes_way_for_much_smaller_ones_only() {
        for (interrupted, newer, goes_first) in [
            // Ten that were just flushed, of 28 MB: before ten of their merges, and not before another such
            // merge.
            ([280; 10], [28; 10], true),
            ([28; 10], [28; 10], false),
            ([28; 10], [280; 10], false),
            ([280; 10], [70; 10], true),
            ([280; 10], [71; 10], false),
        ] {
            let bytes = |sizes: [u64; 10]| sizes.iter().sum::<u64>();
            assert_eq!(choose_compaction(&sized(&newer), Added, 10), Some(0..10));
            let is_small = bytes(newer) <= size_bytes_before(bytes(interrupted));
            assert_eq!(is_small, goes_first, "{newer:?} before {interrupted:?}");
        }
    }

    /// It is quiet after each flush.
    #[test]
    fn in_quiet_a_range_has_few_checkpoints_and_writes_little_anew() {
        let count_min = idle_count_min(10);
        assert_eq!((count_min, idle_count_min(4), idle_count_min(100)), (2, 2, 20));
        let (mut sizes, mut rewritten, mut most) = (Vec::new(), 0, 0);
        let flush_count = 1000;
        for _ in 0..flush_count {
            sizes.insert(0, 64u64);
            while let Some(run) = choose_compaction(&sized(&sizes), Added, count_min) {
                let total: u64 = sizes[run.clone()].iter().sum();
                rewritten += total;
                sizes.splice(run, [total]);
            }
            most = most.max(sizes.len());
        }
        assert!(most <= 7, "{most} checkpoints");
        // One thousand is ten doublings.
        assert!(rewritten <= 11 * 64 * flush_count, "{rewritten} bytes");
    }

    #[test]
    fn merges_that_fall_behind_give_way_less_and_less() {
        for (checkpoint_count, blocks) in [
            (0, 1),
            (12, 1),
            (19, 1),
            (20, 2),
            (22, 4),
            (26, 16),
            (30, STRIDE_BLOCK_COUNT_MAX),
            (31, STRIDE_BLOCK_COUNT_MAX),
            (100_000, STRIDE_BLOCK_COUNT_MAX),
        ] {
            assert_eq!(blocks_before_giving_way(checkpoint_count, 8), blocks, "{checkpoint_count}");
        }
        assert_eq!(blocks_before_giving_way(4, 0), 64, "no division by nothing");
    }

    fn rows() -> impl Strategy<Value = RowsMostly> {
        prop_oneof![Just(Added), Just(Replaced)]
    }

    proptest! {
        #[test]
        fn a_choice_is_a_run_of_at_least_two(sizes in prop::collection::vec(0u64..1 << 40, 0..40), rows in rows(), count_min in 2usize..9) {
            if let Some(run) = choose_compaction(&sized(&sizes), rows, count_min) {
                prop_assert!(run.len() >= 2 && run.end <= sizes.len());
            } else {
                prop_assert!(sizes.len() <= count_min * CHECKPOINT_COUNT_FACTOR);
            }
        }

        #[test]
        fn the_cheapest_is_there_if_any_is_and_costs_no_more(sizes in prop::collection::vec(0u64..1 << 20, 0..40), rows in rows(), count_min in 2usize..9) {
            let cost = |run: Range<usize>| sizes[run].iter().sum::<u64>();
            let preferred = choose_compaction(&sized(&sizes), rows, count_min);
            let cheapest = choose_cheapest_compaction(&sized(&sizes), rows, count_min);
            prop_assert_eq!(preferred.is_some(), cheapest.is_some());
            prop_assert!(cheapest.map(cost) <= preferred.map(cost));
        }

        /// However many equal checkpoints come, few stay and each byte is rewritten a few times only.
        #[test]
        fn the_number_stays_small_and_the_rewriting_too(count in 1usize..300, rows in rows(), count_min in 4usize..11) {
            let mut sizes = Vec::new();
            let mut rewritten = 0;
            for _ in 0..count {
                sizes.insert(0, 64u64);
                while let Some(run) = choose_compaction(&sized(&sizes), rows, count_min) {
                    let total: u64 = sizes[run.clone()].iter().sum();
                    rewritten += total;
                    sizes.splice(run, [total]);
                }
                prop_assert!(sizes.len() <= count_min * CHECKPOINT_COUNT_FACTOR);
            }
            let generations = (count as f64).log(count_min as f64) + 1.5;
            prop_assert!((rewritten as f64) <= 64.0 * count as f64 * generations, "{rewritten} of {count}");
        }
    }
}
