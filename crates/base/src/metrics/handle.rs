//! What a layer records with: handles to the atomic numbers of one series.
//!
//! What always holds: recording takes no lock and allocates nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A sum that only grows.
#[derive(Clone, Debug, Default)]
pub struct Counter(pub(super) Arc<AtomicU64>);

impl Counter {
    /// One more.
    pub fn increment(&self) {
        self.add(1);
    }

    /// So many more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Takes over a sum that is kept elsewhere.
    pub fn set(&self, sum: u64) {
        self.0.store(sum, Ordering::Relaxed);
    }

    /// The same of a duration.
    pub fn set_duration(&self, sum: Duration) {
        self.set(microseconds(sum));
    }
}

/// A value that goes up and down; never below zero.
#[derive(Clone, Debug, Default)]
pub struct Gauge(pub(super) Arc<AtomicU64>);

impl Gauge {
    /// From now on it is this.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The same of a duration.
    pub fn set_duration(&self, value: Duration) {
        self.set(microseconds(value));
    }

    /// One more until what is returned is dropped.
    pub fn hold(&self) -> Held {
        self.0.fetch_add(1, Ordering::Relaxed);
        Held(self.0.clone())
    }
}

/// One of what a gauge counts.
#[derive(Debug)]
pub struct Held(Arc<AtomicU64>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How often values of each size came.
#[derive(Clone, Debug)]
pub struct Histogram(pub(super) Arc<Buckets>);

/// The counts of a histogram.
#[derive(Debug)]
pub(super) struct Buckets {
    bounds: &'static [u64],
    /// One for each bound, and one for what is above the last.
    pub(super) counts: Box<[AtomicU64]>,
    pub(super) sum: AtomicU64,
}

impl Buckets {
    pub(super) fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Buckets { bounds, counts, sum: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// A value came.
    pub fn record(&self, value: u64) {
        let bucket = self.0.bounds.partition_point(|bound| *bound < value);
        self.0.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.0.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Takes over counts that are kept elsewhere, by the family's bounds with one more for what is above the
    /// last, and the sum of the values.
    pub fn set(&self, counts: &[u64], sum: u64) {
        debug_assert_eq!(counts.len(), self.0.counts.len());
        // The sum last, as it is read first.
        for (cell, count) in self.0.counts.iter().zip(counts) {
            cell.store(*count, Ordering::Relaxed);
        }
        self.0.sum.store(sum, Ordering::Relaxed);
    }

    /// Something took so long.
    pub fn record_duration(&self, duration: Duration) {
        self.record(microseconds(duration));
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
