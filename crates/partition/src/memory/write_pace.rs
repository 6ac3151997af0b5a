//! The turns of writers that are slowed, and how fast flushes are: the state behind `choose_write_delay`.
//!
//! Why one for the process: flushes of all ranges are done one after the other, so that the writers of all
//! ranges that lag share their speed. What always holds: the bytes of a write are not known before it is
//! decided, so a turn is taken for as many as writes had lately, and set right afterwards.

use crate::memory::choose_write_delay::{choose_write_delay, time_of};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// So much of the bytes and the time of earlier flushes counts beside those of a new one.
const KEPT_DIVISOR: u32 = 2;
/// What a write counts towards the mean size.
const MEAN_DIVISOR: u64 = 16;

/// The turns of all ranges.
#[derive(Default)]
pub(crate) struct WritePace {
    turns: Mutex<Turns>,
    flushed: Mutex<Flushed>,
    /// 0: not known yet.
    flush_bytes_per_second: AtomicU64,
    slowed: AtomicU64,
    slowed_us: AtomicU64,
}

#[derive(Default)]
struct Turns {
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
    pace: &'a WritePace,
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

    /// Takes the next turn for a write of which so many bytes a second are admitted.
    pub(crate) fn take_turn(&self, now: Duration, bytes_per_second: u64) -> Turn<'_> {
        let mut turns = self.turns.lock();
        let taken_bytes = turns.mean_size_bytes;
        let (delay, next_at) = choose_write_delay(turns.next_at, now, taken_bytes, bytes_per_second);
        turns.next_at = next_at;
        drop(turns);
        if !delay.is_zero() {
            self.slowed.fetch_add(1, Ordering::Relaxed);
            self.slowed_us.fetch_add(delay.as_micros() as u64, Ordering::Relaxed);
        }
        Turn { pace: self, bytes_per_second, taken_bytes, delay, written_bytes: 0 }
    }

    /// Writes that were delayed, and for how long, added up.
    pub(crate) fn slowed(&self) -> (u64, Duration) {
        let slowed_for = Duration::from_micros(self.slowed_us.load(Ordering::Relaxed));
        (self.slowed.load(Ordering::Relaxed), slowed_for)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.pace.turns.lock();
        let (taken, written) = (self.taken_bytes, self.written_bytes);
        turns.mean_size_bytes = (turns.mean_size_bytes * (MEAN_DIVISOR - 1) + written) / MEAN_DIVISOR;
        let of = |size_bytes| time_of(size_bytes, self.bytes_per_second);
        turns.next_at = match written >= taken {
            true => turns.next_at.saturating_add(of(written - taken)),
            false => turns.next_at.saturating_sub(of(taken - written)),
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

    /// The turns of writers whose sizes are not known come as far apart as their bytes take.
    #[test]
    fn a_turn_is_set_right_once_the_size_is_known() {
        let pace = WritePace::default();
        let mut now = Duration::ZERO;
        let mut admitted_bytes = 0;
        for at in 0..10_000u64 {
            let mut turn = pace.take_turn(now, 40_000_000);
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
