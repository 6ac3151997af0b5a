//! Time as a value that is handed in.
//!
//! [`Ticks`] is the one wall-clock type of the project: 100 ns units since 1601-01-01T00:00:00Z, the
//! resolution and the lower bound of the protocol's `Edm.DateTime`.

use crate::BoxFuture;
use std::time::Duration;

/// Instant of the wall clock in 100 ns units since 1601-01-01T00:00:00Z (the epoch of `FILETIME`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

/// Ticks in one second.
pub const TICKS_PER_SECOND: u64 = 10_000_000;

/// Seconds from 1601-01-01 to 1970-01-01.
pub const SECONDS_1601_TO_1970: u64 = 11_644_473_600;

impl Ticks {
    /// The instant `unix` after 1970-01-01T00:00:00Z.
    pub fn from_unix(unix: Duration) -> Self {
        let seconds = unix.as_secs() + SECONDS_1601_TO_1970;
        Ticks(seconds * TICKS_PER_SECOND + u64::from(unix.subsec_nanos()) / 100)
    }

    /// Time since 1970-01-01T00:00:00Z; zero for instants before it.
    pub fn since_unix(self) -> Duration {
        let ticks = self.0.saturating_sub(SECONDS_1601_TO_1970 * TICKS_PER_SECOND);
        Duration::new(ticks / TICKS_PER_SECOND, (ticks % TICKS_PER_SECOND) as u32 * 100)
    }

    /// This instant moved forward, saturating.
    pub fn plus(self, by: Duration) -> Self {
        let ticks =
            by.as_secs().saturating_mul(TICKS_PER_SECOND).saturating_add(u64::from(by.subsec_nanos()) / 100);
        Ticks(self.0.saturating_add(ticks))
    }
}

/// Wall and monotonic time.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock; may stand still or run backwards.
    fn now(&self) -> Ticks;
    /// Time since some fixed instant of this process; never runs backwards.
    fn monotonic(&self) -> Duration;
    /// Completes after `sleep_for` of monotonic time.
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_epoch_maps_there_and_back() {
        let unix = Duration::new(1_700_000_000, 123_456_700);
        assert_eq!(Ticks::from_unix(unix).since_unix(), unix);
        assert_eq!(Ticks::from_unix(Duration::ZERO).0, SECONDS_1601_TO_1970 * TICKS_PER_SECOND);
        assert_eq!(Ticks(0).since_unix(), Duration::ZERO);
        assert_eq!(Ticks(u64::MAX).plus(Duration::from_secs(1)), Ticks(u64::MAX));
    }
}
