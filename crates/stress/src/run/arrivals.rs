//! When requests are due under an open loop: at a steady rate, whatever the server does.
//!
//! Clients take the next due request when they are free, so a request that no client was free for is begun
//! late, and its latency counts from when it was due: nothing is left out while the server is slow
//! (coordinated omission).
//!
//! What always holds: nothing is queued; the backlog is the difference of two numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Requests that are due one after the other, shared by all clients of a step.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// When the first one is due.
    from: Duration,
    per_second: f64,
    taken: AtomicU64,
    begun: AtomicU64,
}

/// Waits of requests that were not begun, with how many have each: so few are distinguished.
const WAITS_TOLD_APART_MAX: u64 = 10_000;

impl Arrivals {
    /// From an instant on, so many a second, which is more than 0.
    pub(crate) fn new(from: Duration, per_second: f64) -> Self {
        Arrivals { from, per_second, taken: AtomicU64::new(0), begun: AtomicU64::new(0) }
    }

    /// When the request of a number is due.
    fn due_at(&self, number: u64) -> Duration {
        self.from + Duration::from_secs_f64(number as f64 / self.per_second)
    }

    /// Takes the next request: when it is due.
    pub(crate) fn take(&self) -> Duration {
        self.due_at(self.taken.fetch_add(1, Ordering::Relaxed))
    }

    /// One that was taken is begun.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests that are due before an instant.
    fn due_before(&self, end: Duration) -> u64 {
        (end.saturating_sub(self.from).as_secs_f64() * self.per_second).ceil() as u64
    }

    /// How long the requests had waited at `end` that were due before it and not begun: waits, with how many
    /// waited so long.
    pub(crate) fn waits(&self, end: Duration) -> Vec<(Duration, u64)> {
        let (begun, due) = (self.begun.load(Ordering::Relaxed), self.due_before(end));
        let count = due.saturating_sub(begun);
        let together = count.div_ceil(WAITS_TOLD_APART_MAX).max(1);
        let firsts = (0..count).step_by(together as usize);
        firsts
            .map(|first| {
                let size = together.min(count - first);
                // The one that waited least: none waited less than it is counted with.
                let last = begun + first + size - 1;
                (end.saturating_sub(self.due_at(last)), size)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(100);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn requests_are_due_at_the_rate() {
        let arrivals = Arrivals::new(START, 4.0);
        let due: Vec<Duration> = (0..5).map(|_| arrivals.take() - START).collect();
        assert_eq!(due, [ms(0), ms(250), ms(500), ms(750), ms(1000)]);
        assert_eq!(arrivals.due_before(START), 0);
        assert_eq!(arrivals.due_before(START + ms(1)), 1);
        assert_eq!(arrivals.due_before(START + ms(1000)), 4);
    }

    #[test]
    fn requests_that_were_not_begun_have_waited() {
        let arrivals = Arrivals::new(START, 1000.0);
        let end = START + ms(100);
        (0..90).for_each(|_| arrivals.begin());
        let waits = arrivals.waits(end);
        assert_eq!(waits.iter().map(|(_, count)| count).sum::<u64>(), 10);
        assert_eq!((waits[0], waits[9]), ((ms(10), 1), (ms(1), 1)));
        (0..10).for_each(|_| arrivals.begin());
        assert_eq!(arrivals.waits(end), []);
        assert_eq!(arrivals.waits(START), []);
    }

    #[test]
    fn many_waits_are_told_in_groups() {
        let arrivals = Arrivals::new(START, 1_000_000.0);
        let waits = arrivals.waits(START + Duration::from_secs(3600));
        assert!(waits.len() as u64 <= WAITS_TOLD_APART_MAX);
        assert_eq!(waits.iter().map(|(_, count)| count).sum::<u64>(), 3_600_000_000);
        assert!(waits.is_sorted_by(|(a, _), (b, _)| a >= b));
    }
}
