//! The time of a range, by which its operations are decided and from which its versions are made: the wall
//! clock's, but never before a version that was given here.
//!
//! Versions are ahead of a wall clock that was set back, by however much. If time stood still until it has
//! caught up, what is hidden, leased or kept for a second would be so for all that while. So it goes on from
//! the newest version with monotonic time, a little slower than that: nothing ends before its time, and the
//! wall clock catches up. What always holds: however the wall clock is set, time is never before a version
//! and most of what has passed since in the same process; after a restart it is never before the newest
//! version.

use crate::operation::RowVersion;
use base::Ticks;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// While it is ahead of the wall clock, the time of a range falls back by one tick in so many.
const SLOWER_BY_ONE_IN: i64 = 8;

/// The time of one range.
#[derive(Debug)]
pub(crate) struct RangeTime {
    /// Ticks that a clock which is slow by that much, and was never set but forward to versions, would have
    /// shown when monotonic time was zero.
    start: AtomicI64,
}

impl RangeTime {
    /// Of a range whose newest version is this one.
    pub(crate) fn new(newest: RowVersion, monotonic: Duration) -> Self {
        RangeTime { start: AtomicI64::new(start_of(newest, monotonic)) }
    }

    /// The time.
    pub(crate) fn now(&self, wall: Ticks, monotonic: Duration) -> Ticks {
        // Relaxed: whoever was told of a version has synchronised with the one who gave it.
        let slow = self.start.load(Ordering::Relaxed).saturating_add(slow_ticks(monotonic));
        wall.max(Ticks(u64::try_from(slow).unwrap_or(0)))
    }

    /// A version is given; `monotonic` is read after the wall clock from which it was made.
    pub(crate) fn note(&self, version: RowVersion, monotonic: Duration) {
        self.start.fetch_max(start_of(version, monotonic), Ordering::Relaxed);
    }

    /// Goes on from the time of a range whose rows are taken over.
    pub(crate) fn go_on_from(&self, parent: &RangeTime) {
        self.start.fetch_max(parent.start.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

fn start_of(version: RowVersion, monotonic: Duration) -> i64 {
    i64::try_from(version.0).unwrap_or(i64::MAX).saturating_sub(slow_ticks(monotonic))
}

fn slow_ticks(monotonic: Duration) -> i64 {
    let ticks = i64::try_from(Ticks(0).plus(monotonic).0).unwrap_or(i64::MAX);
    ticks - ticks / SLOWER_BY_ONE_IN
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::clock::TICKS_PER_SECOND;

    /// Clocks in seconds; the newest version is 1,000 s, at 100 s of monotonic time.
    #[test]
    fn time_goes_on_whatever_the_wall_clock_does() {
        let ticks = |seconds: u64| seconds * TICKS_PER_SECOND;
        let at = Duration::from_secs(100);
        for (wall, passed, expected, what) in [
            (1_000, 0, 1_000, "a wall clock that was never set"),
            (1_080, 80, 1_080, "nor later"),
            (1_500, 80, 1_500, "it was set forward"),
            (400, 0, 1_000, "it was set back"),
            (480, 80, 1_070, "and time goes on, slower by an eighth"),
            (400, 80, 1_070, "also if it stands still"),
            (400 + 4_792, 4_792, 5_193, "just before it catches up"),
            (400 + 4_808, 4_808, 5_208, "just after that"),
        ] {
            let time = RangeTime::new(RowVersion(ticks(1_000)), at);
            let now = time.now(Ticks(ticks(wall)), at + Duration::from_secs(passed));
            assert_eq!(now, Ticks(ticks(expected)), "{what}");
            assert!(now >= Ticks(ticks(1_000)), "{what}");
        }
    }

    #[test]
    fn versions_move_it_forward_only() {
        let (early, late) = (Duration::from_secs(8), Duration::from_secs(16));
        let time = RangeTime::new(RowVersion(1_000), early);
        time.note(RowVersion(1_001), early);
        assert_eq!(time.now(Ticks(0), early), Ticks(1_001));
        time.note(RowVersion(900), early);
        assert_eq!(time.now(Ticks(0), early), Ticks(1_001), "an older one");
        time.note(RowVersion(1_002), late);
        assert_eq!(time.now(Ticks(0), late), Ticks(1_001 + 7 * TICKS_PER_SECOND), "one that was passed by");
        let heir = RangeTime::new(RowVersion(1_002), late);
        heir.go_on_from(&time);
        assert_eq!(heir.now(Ticks(0), late), time.now(Ticks(0), late), "nothing that has passed is lost");
        heir.go_on_from(&RangeTime::new(RowVersion(5), late));
        assert_eq!(heir.now(Ticks(0), late), time.now(Ticks(0), late), "the parent that is furthest");
    }

    #[test]
    fn the_end_of_time_is_no_panic() {
        let time = RangeTime::new(RowVersion(u64::MAX), Duration::MAX);
        time.note(RowVersion(u64::MAX), Duration::ZERO);
        assert!(time.now(Ticks(0), Duration::MAX) >= Ticks(i64::MAX as u64));
        assert_eq!(RangeTime::new(RowVersion(0), Duration::MAX).now(Ticks(0), Duration::ZERO), Ticks(0));
    }
}
