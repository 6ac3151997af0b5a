//! The turns of writers that are slowed, and how fast flushes are: the state behind `choose_write_delay`.
//!
//! Flushes of all ranges are done one after the other, so their speed is one for the process. Each range has
//! turns of its own: writers of one that lags far must not delay those of another. What always holds: the
//! bytes of a write are not known before it is decided, so a turn is taken for as many as writes had lately,
//! and set right afterwards.

use crate::memory::choose_write_delay::{choose_write_delay, time_of};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// So much of the bytes and the time of earlier flushes counts beside those of a new one.
const KEPT_DIVISOR: u32 = 2;
/// What a write counts towards the mean size.
const MEAN_DIVISOR: u64 = 16;

/// How fast the flushes of all ranges are, and how many writes were delayed.
#[derive(Default)]
pub(crate) struct WritePace {
    flushed: Mutex<Flushed>,
    /// 0: not known yet.
    flush_bytes_per_second: AtomicU64,
    slowed: AtomicU64,
    slowed_us: AtomicU64,
}

/// The turns of one range.
#[derive(Default)]
pub(crate) struct WriteTurns {
    next: Mutex<NextTurn>,
}

#[derive(Default)]
struct NextTurn {
    /// In monotonic time.
    next_at: Duration,
    mean_size_bytes: u64,
}

/// Bytes of recent flushes, and what they took.
#[derive(Default)]
struct Flushed {
    size_bytes: u64,
    took_for: Duration,
}

/// A writer's turn: what was taken for its bytes is set right when it is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a WriteTurns,
    bytes_per_second: u64,
    taken_bytes: u64,
    pub(crate) delay: Duration,
    /// What the write put into memory.
    pub(crate) written_bytes: u64,
}

impl WritePace {
    /// A memory table of so many bytes was flushed.
    pub(crate) fn note_flush(&self, size_bytes: u64, took_for: Duration) {
        let mut flushed = self.flushed.lock();
        flushed.size_bytes = flushed.size_bytes / u64::from(KEPT_DIVISOR) + size_bytes;
        flushed.took_for = flushed.took_for / KEPT_DIVISOR + took_for;
        let microseconds = flushed.took_for.as_micros().max(1);
        let rate = u128::from(flushed.size_bytes) * 1_000_000 / microseconds;
        self.flush_bytes_per_second.store(u64::try_from(rate).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How fast recent flushes were; 0: not known yet.
    pub(crate) fn flush_bytes_per_second(&self) -> u64 {
        self.flush_bytes_per_second.load(Ordering::Relaxed)
    }

    /// Takes the range's next turn for a write of which so many bytes a second are admitted.
    pub(crate) fn take_turn<'a>(
        &self,
        turns: &'a WriteTurns,
        now: Duration,
        bytes_per_second: u64,
    ) -> Turn<'a> {
        let mut next = turns.next.lock();
        let taken_bytes = next.mean_size_bytes;
        let (delay, next_at) = choose_write_delay(next.next_at, now, taken_bytes, bytes_per_second);
        next.next_at = next_at;
        drop(next);
        if !delay.is_zero() {
            self.slowed.fetch_add(1, Ordering::Relaxed);
            self.slowed_us.fetch_add(delay.as_micros() as u64, Ordering::Relaxed);
        }
        Turn { turns, bytes_per_second, taken_bytes, delay, written_bytes: 0 }
    }

    /// Writes that were delayed, and for how long, added up.
    pub(crate) fn slowed(&self) -> (u64, Duration) {
        let slowed_for = Duration::from_micros(self.slowed_us.load(Ordering::Relaxed));
        (self.slowed.load(Ordering::Relaxed), slowed_for)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut next = self.turns.next.lock();
        let (taken, written) = (self.taken_bytes, self.written_bytes);
        next.mean_size_bytes = (next.mean_size_bytes * (MEAN_DIVISOR - 1) + written) / MEAN_DIVISOR;
        let of = |size_bytes| time_of(size_bytes, self.bytes_per_second);
        next.next_at = match written >= taken {
            true => next.next_at.saturating_add(of(written - taken)),
            false => next.next_at.saturating_sub(of(taken - written)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_of_flushes_follows_recent_ones() {
        let pace = WritePace::default();
        assert_eq!(pace.flush_bytes_per_second(), 0);
        pace.note_flush(32_000_000, Duration::from_secs(1));
        assert_eq!(pace.flush_bytes_per_second(), 32_000_000);
        pace.note_flush(32_000_000, Duration::from_millis(250));
        assert_eq!(pace.flush_bytes_per_second(), 64_000_000);
        pace.note_flush(32_000_000, Duration::ZERO);
        assert!(pace.flush_bytes_per_second() > 100_000_000);
        for _ in 0..20 {
            pace.note_flush(32_000_000, Duration::from_secs(2));
        }
        assert_eq!(pace.flush_bytes_per_second() / 100_000, 160);
    }

    #[test]
    fn writers_of_a_range_that_lags_far_delay_no_others() {
        let (pace, far, little) = (WritePace::default(), WriteTurns::default(), WriteTurns::default());
        for _ in 0..2000 {
            pace.take_turn(&far, Duration::ZERO, 1_000_000).written_bytes = 40_000;
        }
        assert!(pace.take_turn(&far, Duration::ZERO, 1_000_000).delay > Duration::from_millis(900));
        assert_eq!(pace.take_turn(&little, Duration::ZERO, 80_000_000).delay, Duration::ZERO);
    }

    /// The turns of writers whose sizes are not known come as far apart as their bytes take.
    #[test]
    fn a_turn_is_set_right_once_the_size_is_known() {
        let (pace, turns) = (WritePace::default(), WriteTurns::default());
        let mut now = Duration::ZERO;
        let mut admitted_bytes = 0;
        for at in 0..10_000u64 {
            let mut turn = pace.take_turn(&turns, now, 40_000_000);
            now += turn.delay;
            // Every tenth one is refused, and the others are of all sizes.
            turn.written_bytes = if at % 10 == 3 { 0 } else { at % 7 * 20_000 };
            admitted_bytes += turn.written_bytes;
        }
        let seconds = admitted_bytes as f64 / 40e6;
        let off = (now.as_secs_f64() - seconds).abs() / seconds;
        assert!(off < 0.01, "{now:?} for {admitted_bytes} bytes, off by {off}");
        let (slowed, slowed_for) = pace.slowed();
        assert!(
            slowed > 5_000 && slowed_for.abs_diff(now) < Duration::from_millis(10),
            "{slowed} {slowed_for:?}"
        );
    }
}
