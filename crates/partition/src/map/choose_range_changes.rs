//! Which ranges of a table to split or merge: a pure choice over what they hold and what they are asked for.
//!
//! A range that is too large is split, then one that has been hot for a while; neighbours that have been cold
//! for longer and are small together become one. What always holds: what a split makes is too large to be
//! merged again, and heat that a split can't part (inserts at the range's end) splits nothing.

use base::ByteSize;

use crate::map::range_load::LoadReport;
use crate::settings::PartitionSettings;
use std::fmt;

/// A range is split for heat after this many hot rounds in a row.
const HOT_ROUND_COUNT_MIN: u32 = 4;
/// Neighbours are merged after this many cold rounds in a row.
const COLD_ROUND_COUNT_MIN: u32 = 20;
/// Neighbours are merged if together they have at most one part in this many of a range's largest size.
const MERGED_SIZE_DIVISOR: u64 = 2;
/// While one part in this many of a range is being merged it is not split for its size: the merge would give
/// up, and what it has written would be written again for both parts.
const LARGE_COMPACTION_DIVISOR: u64 = 8;
/// But it is if it is too large by more than one part in this many: there may always be a merge.
const PUT_OFF_DIVISOR: u64 = 4;
/// If more of the requests than this go to the range's end, a split would not part them.
const AT_END_PERCENT_MAX: u64 = 50;

/// What is known of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeReport {
    pub(crate) size_bytes: u64,
    /// Bytes of the checkpoints that are being merged.
    pub(crate) compacting_bytes: u64,
    pub(crate) load: LoadReport,
}

/// A change that is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeChange {
    /// Which range, by its place in the table; a merge is with the one after it.
    pub(crate) index: usize,
    pub(crate) reason: Reason,
}

/// Why a range is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Split: it is too large.
    Size { size_bytes: u64, size_bytes_max: u64 },
    /// Split: it is asked for too much.
    Heat { requests_per_second: u64, hot_rounds: u32 },
    /// Merge: both are hardly asked for, and small.
    Cold { size_bytes: u64, cold_rounds: u32 },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Size { size_bytes, size_bytes_max } => {
                write!(f, "size: {} are more than {}", ByteSize(*size_bytes), ByteSize(*size_bytes_max))
            }
            Reason::Heat { requests_per_second, hot_rounds } => {
                write!(f, "heat: {requests_per_second} requests/s, hot for {hot_rounds} rounds")
            }
            Reason::Cold { size_bytes, cold_rounds } => {
                write!(f, "cold: both idle for {cold_rounds} rounds, together {}", ByteSize(*size_bytes))
            }
        }
    }
}

/// Chooses from a table's ranges in key order; `None` is one that must stay as it is. The changes are in the
/// order of their urgency: after the first that can be done the rest must be chosen anew.
pub(crate) fn choose_range_changes(
    ranges: &[Option<RangeReport>],
    range_count: usize,
    settings: &PartitionSettings,
) -> Vec<RangeChange> {
    let mut splits = Vec::new();
    for (index, range) in ranges.iter().enumerate() {
        let Some(range) = range else { continue };
        let LoadReport { requests_per_second, at_end_percent, trend } = range.load;
        let size_bytes_max = settings.range_size_bytes_max;
        if range.size_bytes > size_bytes_max && !is_put_off(range, size_bytes_max) {
            let reason = Reason::Size { size_bytes: range.size_bytes, size_bytes_max };
            splits.push(((1, range.size_bytes), RangeChange { index, reason }));
        } else if trend.hot_rounds >= HOT_ROUND_COUNT_MIN && at_end_percent <= AT_END_PERCENT_MAX {
            let reason = Reason::Heat { requests_per_second, hot_rounds: trend.hot_rounds };
            splits.push(((0, requests_per_second), RangeChange { index, reason }));
        }
    }
    splits.sort_by_key(|(urgency, change)| (std::cmp::Reverse(*urgency), change.index));
    if range_count >= settings.range_count_max {
        splits.clear();
    }
    let merges = ranges.windows(2).enumerate().filter_map(|(index, pair)| {
        let [Some(first), Some(second)] = pair else { return None };
        let size_bytes = first.size_bytes + second.size_bytes;
        let cold_rounds = first.load.trend.cold_rounds.min(second.load.trend.cold_rounds);
        let small = size_bytes <= settings.range_size_bytes_max / MERGED_SIZE_DIVISOR;
        (small && cold_rounds >= COLD_ROUND_COUNT_MIN)
            .then_some(RangeChange { index, reason: Reason::Cold { size_bytes, cold_rounds } })
    });
    splits.into_iter().map(|(_, change)| change).chain(merges).collect()
}

/// Whether a split for its size waits for the end of a merge.
fn is_put_off(range: &RangeReport, size_bytes_max: u64) -> bool {
    let put_off_to = size_bytes_max.saturating_add(size_bytes_max / PUT_OFF_DIVISOR);
    let compacts_much =
        range.compacting_bytes > 0 && range.compacting_bytes >= range.size_bytes / LARGE_COMPACTION_DIVISOR;
    compacts_much && range.size_bytes <= put_off_to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::range_load::Trend;

    const MAX: u64 = 1000;

    fn settings() -> PartitionSettings {
        PartitionSettings { range_size_bytes_max: MAX, range_count_max: 8, ..PartitionSettings::default() }
    }

    fn sized(size_bytes: u64) -> RangeReport {
        RangeReport { size_bytes, ..RangeReport::default() }
    }

    fn hot(requests_per_second: u64, at_end_percent: u64, hot_rounds: u32) -> RangeReport {
        let trend = Trend { hot_rounds, cold_rounds: 0 };
        let load = LoadReport { requests_per_second, at_end_percent, trend };
        RangeReport { load, ..RangeReport::default() }
    }

    fn cold(size_bytes: u64, cold_rounds: u32) -> RangeReport {
        let trend = Trend { hot_rounds: 0, cold_rounds };
        RangeReport { load: LoadReport { trend, ..LoadReport::default() }, ..sized(size_bytes) }
    }

    fn chosen(ranges: &[RangeReport]) -> Vec<usize> {
        chosen_among(&ranges.iter().cloned().map(Some).collect::<Vec<_>>())
    }

    fn chosen_among(ranges: &[Option<RangeReport>]) -> Vec<usize> {
        choose_range_changes(ranges, ranges.len(), &settings()).iter().map(|change| change.index).collect()
    }

    /// The neighbours of a damaged range are no neighbours of each other.
    #[test]
    fn nothing_is_split_or_merged_across_a_range_that_must_stay() {
        let cold = || Some(cold(10, COLD_ROUND_COUNT_MIN));
        assert_eq!(chosen_among(&[cold(), None, cold()]), []);
        assert_eq!(chosen_among(&[cold(), None, cold(), cold()]), [2]);
        assert_eq!(chosen_among(&[None, Some(sized(MAX + 1)), None]), [1]);
    }

    #[test]
    fn large_ranges_split_the_largest_first_and_before_hot_ones() {
        assert_eq!(chosen(&[sized(MAX)]), []);
        assert_eq!(chosen(&[sized(MAX + 1), sized(5), sized(MAX + 2)]), [2, 0]);
        assert_eq!(chosen(&[hot(1 << 40, 0, HOT_ROUND_COUNT_MIN), sized(MAX + 1)]), [1, 0]);
    }

    #[test]
    fn a_split_for_size_waits_for_a_large_merge_but_not_for_ever() {
        let merging = |size_bytes, compacting_bytes| RangeReport { compacting_bytes, ..sized(size_bytes) };
        let large = MAX + MAX / PUT_OFF_DIVISOR;
        let cases = [
            (merging(MAX + 1, MAX), false),
            (merging(large, large / LARGE_COMPACTION_DIVISOR), false),
            (merging(large, large / LARGE_COMPACTION_DIVISOR - 1), true),
            (merging(large + 1, large), true),
            (merging(MAX, MAX), false),
        ];
        for (range, is_split) in cases {
            assert_eq!(!chosen(&[range]).is_empty(), is_split, "{range:?}");
        }
        assert_eq!(chosen(&[merging(MAX + 1, MAX), sized(MAX + 1)]), [1], "another one does not wait for it");
        let hot = hot(99, 0, HOT_ROUND_COUNT_MIN);
        let large_and_hot = RangeReport { size_bytes: MAX + 1, compacting_bytes: MAX, ..hot };
        assert_eq!(chosen(&[large_and_hot]), [0], "heat waits for no merge");
    }

    #[test]
    fn heat_must_last_and_be_partable() {
        assert_eq!(chosen(&[hot(99, 0, HOT_ROUND_COUNT_MIN - 1)]), []);
        assert_eq!(chosen(&[hot(99, AT_END_PERCENT_MAX + 1, HOT_ROUND_COUNT_MIN)]), []);
        assert_eq!(chosen(&[hot(99, 0, HOT_ROUND_COUNT_MIN), hot(100, 0, HOT_ROUND_COUNT_MIN)]), [1, 0]);
    }

    #[test]
    fn small_cold_neighbours_merge_and_what_a_split_made_does_not() {
        let long = COLD_ROUND_COUNT_MIN;
        assert_eq!(chosen(&[cold(10, long), cold(10, long)]), [0]);
        assert_eq!(chosen(&[cold(10, long), cold(10, long - 1)]), []);
        assert_eq!(chosen(&[cold(MAX / 2, long), cold(MAX / 2 + 1, long)]), [], "halves of a split stay");
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let many = vec![sized(MAX + 1); 8];
        assert_eq!(chosen(&many), []);
        assert_eq!(chosen(&many[1..]).len(), 7);
    }
}
