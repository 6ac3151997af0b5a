//! Which range's memory table is frozen, and so flushed, before it is full: a pure choice over what each
//! range holds.
//!
//! The largest table goes first: it frees the most for one checkpoint, and small ones grow on. Tables that
//! are frozen already are on their way out and don't count.

/// What one range holds in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeMemory {
    /// Bytes of the table that takes changes.
    pub(crate) active_bytes: u64,
    /// Whether one more table may be frozen.
    pub(crate) may_freeze: bool,
}

/// Chooses the range whose active table is frozen next, if the active tables together reach
/// `flush_from_bytes`.
pub(crate) fn choose_flush(ranges: &[RangeMemory], flush_from_bytes: u64) -> Option<usize> {
    let active_bytes: u64 = ranges.iter().map(|range| range.active_bytes).sum();
    if active_bytes < flush_from_bytes {
        return None;
    }
    let candidates =
        ranges.iter().enumerate().filter(|(_, range)| range.may_freeze && range.active_bytes > 0);
    candidates.max_by_key(|(_, range)| range.active_bytes).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(active_bytes: u64) -> RangeMemory {
        RangeMemory { active_bytes, may_freeze: true }
    }

    #[test]
    fn the_largest_goes_once_the_sum_is_reached() {
        assert_eq!(choose_flush(&[], 0), None);
        assert_eq!(choose_flush(&[range(10), range(30), range(20)], 61), None);
        assert_eq!(choose_flush(&[range(10), range(30), range(20)], 60), Some(1));
        assert_eq!(choose_flush(&[range(0), range(0)], 0), None, "there is nothing to flush");
    }

    #[test]
    fn a_range_whose_flushes_lag_is_not_asked_for_more() {
        let lagging = RangeMemory { may_freeze: false, ..range(90) };
        assert_eq!(choose_flush(&[lagging, range(10)], 50), Some(1));
        assert_eq!(choose_flush(&[lagging], 50), None);
    }
}
