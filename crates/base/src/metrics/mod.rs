//! What the process measures of itself, for operators: counters, gauges and histograms with names and labels.
//!
//! Why here: every layer records, and only the program knows how the metrics leave it. A layer declares a
//! [`Family`] beside the code that records it, asks the [`Metrics`] that it was handed for a handle once, and
//! records with that: a relaxed atomic addition, no lock, no allocation. What always holds: a family has at
//! most [`SERIES_COUNT_MAX`] series; what comes beyond is recorded in one that has [`OTHER`] for each label.

mod family;
mod handle;
mod registry;

pub use family::{Family, Kind, Unit};
pub use handle::{Counter, Gauge, Held, Histogram};
pub use registry::{FamilyReading, Metrics, OTHER, SERIES_COUNT_MAX, SeriesReading, Value};
