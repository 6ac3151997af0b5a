//! Latencies in microseconds, in a histogram of bounded size.
//!
//! What always holds: a latency is kept with three digits, and one beyond [`LATENCY_US_MAX`] as that.

use hdrhistogram::Histogram;
use std::time::Duration;

/// The longest latency that differs from longer ones: an hour.
pub(crate) const LATENCY_US_MAX: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Latencies of some operations.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    us: Histogram<u64>,
}

/// Some of their percentiles, in microseconds; all 0 without latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Half of the latencies are at most that.
    pub p50_us: u64,
    /// 95 %.
    pub p95_us: u64,
    /// 99 %.
    pub p99_us: u64,
    /// 99.9 %.
    pub p999_us: u64,
    /// All.
    pub max_us: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        match Histogram::new_with_bounds(1, LATENCY_US_MAX, DIGITS) {
            Ok(us) => Latencies { us },
            Err(error) => unreachable!("the bounds are fixed: {error}"),
        }
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        self.record_many(latency, 1);
    }

    /// The same latency, so many times.
    pub(crate) fn record_many(&mut self, latency: Duration, count: u64) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(LATENCY_US_MAX);
        self.us.saturating_record_n(us.max(1), count);
    }

    pub(crate) fn add(&mut self, others: &Latencies) {
        if let Err(error) = self.us.add(&others.us) {
            unreachable!("all have the same bounds: {error}");
        }
    }

    pub(crate) fn clear(&mut self) {
        self.us.reset();
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.us.len()
    }

    /// The latency that this share of all, from 0 to 1, does not exceed.
    pub(crate) fn at(&self, share: f64) -> u64 {
        // Never beyond the largest, which the width of its slot is.
        self.us.value_at_quantile(share).min(self.us.max())
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        Percentiles {
            p50_us: self.at(0.5),
            p95_us: self.at(0.95),
            p99_us: self.at(0.99),
            p999_us: self.at(0.999),
            max_us: self.us.max(),
        }
    }

    /// Shares and the latencies that they do not exceed, closer together towards all: for a plot.
    pub(crate) fn curve(&self) -> Vec<(f64, u64)> {
        if self.us.is_empty() {
            return Vec::new();
        }
        // 0 %, 10 % … of what is left, down to one operation of them.
        let mut points = Vec::new();
        let mut left = 1.0;
        while left >= 1.0 / self.us.len() as f64 && points.len() < CURVE_POINTS_MAX {
            points.extend((0..9).map(|tenth| {
                let share = 1.0 - left * (1.0 - f64::from(tenth) / 10.0);
                (share, self.at(share))
            }));
            left /= 10.0;
        }
        points
    }
}

/// Points of a curve, at most.
const CURVE_POINTS_MAX: usize = 72;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_latencies() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.percentiles(), Percentiles::default());
        assert!(latencies.curve().is_empty());
        for ms in 1..=1000 {
            latencies.record(Duration::from_millis(ms));
        }
        let found = latencies.percentiles();
        let near = |us: u64, expected: u64| us.abs_diff(expected) * 500 <= expected;
        assert!(near(found.p50_us, 500_000) && near(found.p95_us, 950_000), "{found:?}");
        assert!(near(found.p99_us, 990_000) && near(found.p999_us, 999_000), "{found:?}");
        assert!(near(found.max_us, 1_000_000), "{found:?}");
        let curve = latencies.curve();
        assert_eq!(curve[0].0, 0.0);
        assert!(curve.is_sorted_by_key(|(share, _)| *share) && curve.is_sorted_by_key(|(_, us)| *us));
        assert!(curve.last().is_some_and(|(share, _)| *share > 0.999), "{curve:?}");
    }

    #[test]
    fn added_and_long_latencies_are_kept() {
        let (mut some, mut others) = (Latencies::new(), Latencies::new());
        some.record_many(Duration::from_millis(1), 99);
        others.record(Duration::from_secs(1 << 40));
        others.record(Duration::ZERO);
        some.add(&others);
        assert_eq!(some.count(), 101);
        assert!(some.percentiles().max_us.abs_diff(LATENCY_US_MAX) * 500 < LATENCY_US_MAX);
        assert_eq!(some.at(0.0), 1);
        some.clear();
        assert_eq!(some.count(), 0);
    }
}
