//! All metrics of a process, by family and labels.
//!
//! What always holds: a series that was made stays, and the series of a family are bounded.

use super::family::{Family, Kind};
use super::handle::{Buckets, Counter, Gauge, Histogram};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Series of one family at most: a label may take its values from what clients send.
pub const SERIES_COUNT_MAX: usize = 1000;
/// Each label of the series that takes what is beyond the bound.
pub const OTHER: &str = "other";

/// All metrics of a process. Cheap to clone.
#[derive(Clone, Default)]
pub struct Metrics {
    families: Arc<Mutex<BTreeMap<&'static str, Registered>>>,
}

struct Registered {
    family: &'static Family,
    series: BTreeMap<Vec<String>, Cells>,
}

#[derive(Clone)]
enum Cells {
    One(Arc<AtomicU64>),
    Histogram(Arc<Buckets>),
}

/// A family at a moment.
#[derive(Debug)]
pub struct FamilyReading {
    /// What it is.
    pub family: &'static Family,
    /// Its series, in the order of their labels.
    pub series: Vec<SeriesReading>,
}

/// One series at a moment.
#[derive(Debug, PartialEq, Eq)]
pub struct SeriesReading {
    /// The values of the family's labels.
    pub labels: Vec<String>,
    /// What was recorded.
    pub value: Value,
}

/// What a series has.
#[derive(Debug, PartialEq, Eq)]
pub enum Value {
    /// Of a counter or a gauge.
    Number(u64),
    /// Of a histogram.
    Histogram {
        /// How many values were at most as large as each bound, and how many there were.
        cumulative: Vec<u64>,
        /// Of all values.
        sum: u64,
    },
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("families", &self.families.lock().len()).finish()
    }
}

impl Metrics {
    /// The counter of this family with these values of its labels.
    pub fn counter(&self, family: &'static Family, labels: &[&str]) -> Counter {
        debug_assert_eq!(family.kind, Kind::Counter, "{}", family.name);
        Counter(self.one(family, labels))
    }

    /// The gauge of this family with these values of its labels.
    pub fn gauge(&self, family: &'static Family, labels: &[&str]) -> Gauge {
        debug_assert_eq!(family.kind, Kind::Gauge, "{}", family.name);
        Gauge(self.one(family, labels))
    }

    /// The histogram of this family with these values of its labels.
    pub fn histogram(&self, family: &'static Family, labels: &[&str]) -> Histogram {
        debug_assert_eq!(family.kind, Kind::Histogram, "{}", family.name);
        match self.cells(family, labels) {
            Cells::Histogram(buckets) => Histogram(buckets),
            Cells::One(_) => Histogram(Arc::new(Buckets::new(family.bounds))),
        }
    }

    fn one(&self, family: &'static Family, labels: &[&str]) -> Arc<AtomicU64> {
        match self.cells(family, labels) {
            Cells::One(cell) => cell,
            Cells::Histogram(_) => Arc::default(),
        }
    }

    fn cells(&self, family: &'static Family, labels: &[&str]) -> Cells {
        debug_assert_eq!(family.labels.len(), labels.len(), "{}", family.name);
        let mut families = self.families.lock();
        let registered =
            families.entry(family.name).or_insert_with(|| Registered { family, series: BTreeMap::new() });
        let mut labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        if !registered.series.contains_key(&labels) && registered.series.len() + 1 >= SERIES_COUNT_MAX {
            labels = vec![OTHER.to_owned(); labels.len()];
        }
        let new = || match family.kind {
            Kind::Counter | Kind::Gauge => Cells::One(Arc::default()),
            Kind::Histogram => Cells::Histogram(Arc::new(Buckets::new(family.bounds))),
        };
        registered.series.entry(labels).or_insert_with(new).clone()
    }

    /// All metrics, families in the order of their names.
    pub fn read(&self) -> Vec<FamilyReading> {
        let families = self.families.lock();
        let of_series = |(labels, cells): (&Vec<String>, &Cells)| SeriesReading {
            labels: labels.clone(),
            value: read_cells(cells),
        };
        families
            .values()
            .map(|registered| FamilyReading {
                family: registered.family,
                series: registered.series.iter().map(of_series).collect(),
            })
            .collect()
    }
}

fn read_cells(cells: &Cells) -> Value {
    match cells {
        Cells::One(cell) => Value::Number(cell.load(Ordering::Relaxed)),
        Cells::Histogram(buckets) => {
            // The sum first: it is of no more values than are counted, so averages are not too large.
            let sum = buckets.sum.load(Ordering::Relaxed);
            let mut count = 0;
            let cumulative = buckets.counts.iter().map(|bucket| {
                count += bucket.load(Ordering::Relaxed);
                count
            });
            Value::Histogram { cumulative: cumulative.collect(), sum }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::Unit;
    use super::*;
    use std::time::Duration;

    static REQUESTS: Family =
        Family::counter("test_requests_total", Unit::Count, &["account"], "Requests of each account.");
    static OPEN: Family = Family::gauge("test_open", Unit::Count, &[], "Open things.");
    static TOOK: Family = Family::durations("test_took_seconds", &[], "How long things took.");

    #[test]
    fn handles_of_the_same_labels_record_in_one_series() {
        let metrics = Metrics::default();
        metrics.counter(&REQUESTS, &["a"]).add(2);
        metrics.counter(&REQUESTS, &["a"]).increment();
        metrics.counter(&REQUESTS, &["b"]).increment();
        let open = metrics.gauge(&OPEN, &[]);
        let held = open.hold();
        let _other = open.hold();
        drop(held);
        let read = metrics.read();
        let names: Vec<&str> = read.iter().map(|reading| reading.family.name).collect();
        assert_eq!(names, ["test_open", "test_requests_total"]);
        assert_eq!(read[0].series, [SeriesReading { labels: vec![], value: Value::Number(1) }]);
        let of = |label: &str, count| SeriesReading {
            labels: vec![label.to_owned()],
            value: Value::Number(count),
        };
        assert_eq!(read[1].series, [of("a", 3), of("b", 1)]);
    }

    #[test]
    fn a_bound_is_part_of_its_bucket() {
        let metrics = Metrics::default();
        let took = metrics.histogram(&TOOK, &[]);
        for us in [0, 100, 101, 30_000_000, 30_000_001] {
            took.record_duration(Duration::from_micros(us));
        }
        let read = metrics.read();
        let Value::Histogram { cumulative, sum } = &read[0].series[0].value else { panic!() };
        assert_eq!((cumulative[0], cumulative[1], cumulative.len()), (2, 3, TOOK.bounds.len() + 1));
        assert_eq!(cumulative[TOOK.bounds.len() - 1..], [4, 5]);
        assert_eq!(*sum, 60_000_202);
        assert!(TOOK.bounds.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn counts_that_are_kept_elsewhere_are_taken_over() {
        let metrics = Metrics::default();
        let mut counts = vec![0; TOOK.bounds.len() + 1];
        (counts[0], counts[2]) = (3, 1);
        metrics.histogram(&TOOK, &[]).set(&counts, 700);
        let read = metrics.read();
        let Value::Histogram { cumulative, sum } = &read[0].series[0].value else { panic!() };
        assert_eq!((&cumulative[..3], cumulative[TOOK.bounds.len()], *sum), (&[3, 3, 4][..], 4, 700));
    }

    #[test]
    fn ten_thousand_accounts_have_a_thousand_series() {
        let metrics = Metrics::default();
        for account in 0..10_000 {
            metrics.counter(&REQUESTS, &[&format!("account{account}")]).increment();
        }
        metrics.counter(&REQUESTS, &["account7"]).increment();
        let read = metrics.read();
        assert_eq!(read[0].series.len(), SERIES_COUNT_MAX);
        let count = |label: &str| {
            let series = read[0].series.iter().find(|series| series.labels[0] == label).unwrap();
            let Value::Number(count) = series.value else { panic!() };
            count
        };
        assert_eq!((count("account7"), count(OTHER)), (2, 10_000 - (SERIES_COUNT_MAX as u64 - 1)));
    }
}
