//! What predictions are made from: the sample's counts, each computed once.
//!
//! What always holds: sums are over sorted keys, so the same sample gives the same numbers in each run.

use crate::design::{Part, key_of};
use crate::mix::Query;
use crate::predict::share::{Share, largest_share};
use crate::sample::Sample;
use crate::sample::column::{Column, columns};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A sample with what was computed from it.
pub(crate) struct Facts<'a> {
    pub(crate) sample: &'a Sample,
    pub(crate) columns: BTreeMap<String, Column>,
    /// Entities of each key of these parts.
    counted: RefCell<BTreeMap<Vec<Part>, Vec<u64>>>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(sample: &'a Sample) -> Self {
        Facts { sample, columns: columns(sample), counted: RefCell::default() }
    }

    pub(crate) fn entities(&self) -> usize {
        self.sample.entities.len()
    }

    /// Entities of each key of these parts, in the order of keys.
    pub(crate) fn counts(&self, parts: &[Part]) -> Vec<u64> {
        if let Some(counts) = self.counted.borrow().get(parts) {
            return counts.clone();
        }
        let mut keys: Vec<String> =
            self.sample.entities.iter().filter_map(|entity| key_of(parts, entity)).collect();
        keys.sort_unstable();
        let counts: Vec<u64> = keys.chunk_by(|a, b| a == b).map(|equal| equal.len() as u64).collect();
        self.counted.borrow_mut().insert(parts.to_vec(), counts.clone());
        counts
    }

    /// The largest partition of these parts.
    pub(crate) fn largest(&self, parts: &[Part]) -> Share {
        largest_share(self.counts(parts).into_iter())
    }

    /// How many different keys of these parts there are in all: those that were seen, and with a sample
    /// those that the ones that were seen once and twice tell of (Chao 1984), which is a lower bound.
    pub(crate) fn partition_count(&self, parts: &[Part]) -> f64 {
        let counts = self.counts(parts);
        if self.sample.share >= 1.0 {
            return counts.len() as f64;
        }
        let seen = |times: u64| counts.iter().filter(|count| **count == times).count() as f64;
        let (once, twice) = (seen(1), seen(2));
        let unseen =
            if twice > 0.0 { once * once / (2.0 * twice) } else { once * (once - 1.0).max(0.0) / 2.0 };
        (counts.len() as f64 + unseen).min(self.sample.whole_count())
    }

    /// How many values a client can know of a property.
    pub(crate) fn enumerable(&self, name: &str) -> Option<f64> {
        let column = self.columns.get(name)?;
        column.is_enumerable(self.entities()).then_some(column.distinct as f64)
    }

    /// From the least to the greatest value of a property: seconds of times.
    pub(crate) fn span(&self, name: &str) -> Option<f64> {
        let (low, high) = self.columns.get(name)?.span?;
        Some(high - low)
    }

    /// How many entities a query wants, on the average over entities: pairs of the sample that have all its
    /// properties in common tell how many of all share them.
    pub(crate) fn wanted(&self, query: &Query) -> f64 {
        let parts: Vec<Part> = query.equal.iter().cloned().map(Part::Value).collect();
        let count = self.entities() as f64;
        let pairs: f64 = self.counts(&parts).iter().map(|count| (*count * (count - 1)) as f64).sum();
        let among = if count > 1.0 { pairs / (count * (count - 1.0)) } else { 1.0 };
        let mut wanted = (self.sample.whole_count() * among).max(1.0);
        if let (Some(length), Some(span)) =
            (query.length, query.range.as_deref().and_then(|name| self.span(name)))
        {
            wanted *= (length / span.max(length)).min(1.0);
        }
        match query.newest {
            Some(newest) => wanted.min(newest as f64),
            None => wanted.max(1.0),
        }
    }

    /// How many of so many periods are tried until the newest ones are found, on the average over entities:
    /// those with the query's values in common are taken to be spread evenly, and the newest period to be
    /// half full.
    pub(crate) fn periods_of_newest(&self, query: &Query, newest: f64, periods: f64) -> f64 {
        let parts: Vec<Part> = query.equal.iter().cloned().map(Part::Value).collect();
        let tried = |count: u64| {
            let of_a_period = count as f64 / self.sample.share / periods;
            (newest / of_a_period + 0.5).clamp(1.0, periods)
        };
        let counts = self.counts(&parts);
        let sum: f64 = counts.iter().map(|count| *count as f64 * tried(*count)).sum();
        sum / self.entities().max(1) as f64
    }

    /// How many entities a partition has, on the average over entities.
    pub(crate) fn partition_size(&self, parts: &[Part]) -> f64 {
        let count = self.entities() as f64;
        let pairs: f64 = self.counts(parts).iter().map(|count| (*count * (count - 1)) as f64).sum();
        let among = if count > 1.0 { pairs / (count * (count - 1.0)) } else { 1.0 };
        (self.sample.whole_count() * among).max(1.0)
    }
}
