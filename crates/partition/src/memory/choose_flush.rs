//! Which range's memory table is frozen, and so flushed, before it is full: a pure choice over what each
//! range holds.
//!
//! The largest table goes first: it frees the most for one checkpoint, and small ones grow on. Where a load
//! reads the logs from far away, a group of the log costs it a request, however small it is: so the table
//! with the most groups goes once they are too many, of it alone or of all. Tables that are frozen already
//! are on their way out and don't count.

/// What one range holds in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeMemory {
    /// Bytes of the table that takes changes.
    pub(crate) active_bytes: u64,
    /// Groups of the log that it has them from.
    pub(crate) active_groups: u64,
    /// Whether one more table may be frozen.
    pub(crate) may_freeze: bool,
}

/// From when on active tables are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlushFrom {
    /// Bytes of all together.
    pub(crate) bytes: u64,
    /// Groups of all logs together; [`u64::MAX`]: however many there are.
    pub(crate) groups: u64,
}

impl FlushFrom {
    /// Groups of one range alone.
    pub(crate) fn range_groups(self) -> u64 {
        (self.groups / RANGE_GROUPS_DIVISOR).max(1)
    }
}

/// The groups that one range may have, as a part of those of all.
const RANGE_GROUPS_DIVISOR: u64 = 8;

/// Chooses the range whose active table is frozen next, if active tables together, or one alone, reach what
/// they are frozen from.
pub(crate) fn choose_flush(ranges: &[RangeMemory], from: FlushFrom) -> Option<usize> {
    let largest_by = |key: fn(&RangeMemory) -> u64| {
        let candidates =
            ranges.iter().enumerate().filter(|(_, range)| range.may_freeze && range.active_bytes > 0);
        candidates.max_by_key(|(_, range)| key(range))
    };
    if ranges.iter().map(|range| range.active_bytes).sum::<u64>() >= from.bytes {
        return largest_by(|range| range.active_bytes).map(|(index, _)| index);
    }
    let (index, range) = largest_by(|range| range.active_groups)?;
    // Those of a range whose flushes fail stay however many tables of others are frozen.
    let can_go = ranges.iter().filter(|range| range.may_freeze && range.active_bytes > 0);
    let all: u64 = can_go.map(|range| range.active_groups).sum();
    (range.active_groups >= from.range_groups() || all >= from.groups).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(active_bytes: u64) -> RangeMemory {
        RangeMemory { active_bytes, active_groups: 1, may_freeze: true }
    }

    fn bytes(bytes: u64) -> FlushFrom {
        FlushFrom { bytes, groups: u64::MAX }
    }

    #[test]
    fn the_largest_goes_once_the_sum_is_reached() {
        assert_eq!(choose_flush(&[], bytes(0)), None);
        assert_eq!(choose_flush(&[range(10), range(30), range(20)], bytes(61)), None);
        assert_eq!(choose_flush(&[range(10), range(30), range(20)], bytes(60)), Some(1));
        assert_eq!(choose_flush(&[range(0), range(0)], bytes(0)), None, "there is nothing to flush");
    }

    #[test]
    fn a_range_whose_flushes_lag_is_not_asked_for_more() {
        let lagging = RangeMemory { may_freeze: false, ..range(90) };
        assert_eq!(choose_flush(&[lagging, range(10)], bytes(50)), Some(1));
        assert_eq!(choose_flush(&[lagging], bytes(50)), None);
    }

    #[test]
    fn a_table_of_many_small_groups_goes_though_it_is_small() {
        let of = |active_bytes, active_groups| RangeMemory { active_groups, ..range(active_bytes) };
        let from = FlushFrom { bytes: 1000, groups: 80 };
        assert_eq!(choose_flush(&[of(500, 9), of(20, 9)], from), None);
        assert_eq!(choose_flush(&[of(500, 9), of(20, 10)], from), Some(1), "alone an eighth of all");
        let many = [[of(50, 8); 9].as_slice(), &[of(20, 9)]].concat();
        assert_eq!(choose_flush(&many, from), Some(9), "all together");
        assert_eq!(choose_flush(&many[..9], FlushFrom { groups: 73, ..from }), None);
        let lagging = RangeMemory { may_freeze: false, ..of(20, 90) };
        assert_eq!(choose_flush(&[lagging], from), None);
        assert_eq!(choose_flush(&[lagging, of(20, 5)], from), None, "others can't make it less");
        assert_eq!(choose_flush(&[of(0, 90), of(20, 5)], from), None, "nor can an empty one");
        assert_eq!(choose_flush(&[of(0, 90)], from), None, "there is nothing to flush");
        assert_eq!(choose_flush(&[of(999, 1 << 40)], bytes(1000)), None, "of a folder they don't count");
    }
}
