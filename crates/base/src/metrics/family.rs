//! What a metric is called, what it means, and in what it is counted.
//!
//! What always holds: a name stands for one kind, one unit and one set of labels.

/// How the values of a family behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from zero when the process starts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How often values were at most as large as each bound.
    Histogram,
}

/// In what values are recorded, and in what they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Recorded in microseconds, shown in seconds.
    Seconds,
}

impl Unit {
    /// A recorded value as it is shown.
    pub fn shown(self, recorded: u64) -> f64 {
        match self {
            Unit::Count | Unit::Bytes => recorded as f64,
            Unit::Seconds => recorded as f64 / 1e6,
        }
    }
}

/// Metrics of one name, which differ by their labels. Declared once, as a constant.
#[derive(Debug)]
pub struct Family {
    /// In the words of the Prometheus naming rules: prefix, what, unit, and `_total` for counters.
    pub name: &'static str,
    /// How its values behave.
    pub kind: Kind,
    /// In what they are.
    pub unit: Unit,
    /// What they mean, in one sentence.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Of a histogram: the upper bounds of its buckets, rising, as values are recorded.
    pub bounds: &'static [u64],
}

/// From a tenth of a millisecond to half a minute, in microseconds.
const DURATION_BOUNDS_US: &[u64] = &[
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000, 30_000_000,
];
/// From one to a thousand.
const COUNT_BOUNDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

impl Family {
    /// A metric that only grows.
    pub const fn counter(
        name: &'static str,
        unit: Unit,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Family { name, kind: Kind::Counter, unit, help, labels, bounds: &[] }
    }

    /// A metric that goes up and down.
    pub const fn gauge(
        name: &'static str,
        unit: Unit,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Family { name, kind: Kind::Gauge, unit, help, labels, bounds: &[] }
    }

    /// How long something takes.
    pub const fn durations(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Family { name, kind: Kind::Histogram, unit: Unit::Seconds, help, labels, bounds: DURATION_BOUNDS_US }
    }

    /// How many there are of something at once.
    pub const fn sizes(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Family { name, kind: Kind::Histogram, unit: Unit::Count, help, labels, bounds: COUNT_BOUNDS }
    }
}
