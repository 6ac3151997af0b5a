//! What is counted of commits and flushes, of all ranges together.
//!
//! What always holds: handles are made once, where the layer is opened.

use base::metrics::{Counter, Family, Gauge, Histogram, Metrics, Unit};

static COMMIT: Family = Family::durations(
    "larimar_commit_seconds",
    &[],
    "How long a group of operations takes to become durable in its range's commit log.",
);
static WAIT: Family = Family::durations(
    "larimar_wait_seconds",
    &["for"],
    "How long operations that had to wait did so: for the lock of their range, for the log, or for the disk, a block that no cache has.",
);
static COMMITTED: Family = Family::counter(
    "larimar_committed_bytes_total",
    Unit::Bytes,
    &[],
    "Bytes of operations that were written to commit logs.",
);
static FLUSH: Family =
    Family::durations("larimar_flush_seconds", &[], "How long a memory table takes to become a checkpoint.");
static FLUSHED: Family = Family::counter(
    "larimar_flushed_bytes_total",
    Unit::Bytes,
    &[],
    "Bytes of memory tables that became checkpoints.",
);

static START_RANGES: Family =
    Family::gauge("larimar_start_ranges", Unit::Count, &[], "Ranges that the last start had to load.");
static START_RANGES_READ: Family = Family::gauge(
    "larimar_start_ranges_read",
    Unit::Count,
    &[],
    "Of these, those whose metadata, checkpoints and logs were read.",
);
static REPLAYED: Family = Family::counter(
    "larimar_replayed_changes_total",
    Unit::Count,
    &[],
    "Changes that starts have read again from commit logs.",
);

/// The metrics of all ranges.
pub(crate) struct RangeMetrics {
    pub(crate) commit: Histogram,
    /// For a range's serial section, where another operation had it.
    pub(crate) lock_wait: Histogram,
    /// From a decision until all that it saw or changed is durable.
    pub(crate) log_wait: Histogram,
    /// For a block that no cache has.
    pub(crate) disk_wait: Histogram,
    pub(crate) committed_bytes: Counter,
    pub(crate) flush: Histogram,
    pub(crate) flushed_bytes: Counter,
    pub(crate) start_ranges: Gauge,
    pub(crate) start_ranges_read: Gauge,
    pub(crate) replayed: Counter,
}

impl RangeMetrics {
    /// With nothing counted.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        RangeMetrics {
            commit: metrics.histogram(&COMMIT, &[]),
            lock_wait: metrics.histogram(&WAIT, &["lock"]),
            log_wait: metrics.histogram(&WAIT, &["log"]),
            disk_wait: metrics.histogram(&WAIT, &["disk"]),
            committed_bytes: metrics.counter(&COMMITTED, &[]),
            flush: metrics.histogram(&FLUSH, &[]),
            flushed_bytes: metrics.counter(&FLUSHED, &[]),
            start_ranges: metrics.gauge(&START_RANGES, &[]),
            start_ranges_read: metrics.gauge(&START_RANGES_READ, &[]),
            replayed: metrics.counter(&REPLAYED, &[]),
        }
    }
}
