//! What is counted of the journal's records.
//!
//! What always holds: handles are made once, where the layer is opened.

use base::metrics::{Counter, Family, Histogram, Metrics, Unit};

static GROUP_SIZE: Family = Family::sizes(
    "larimar_journal_group_requests",
    &[],
    "Requests that share a record of the journal, and so a sync.",
);
static WRITTEN: Family = Family::counter(
    "larimar_journal_written_bytes_total",
    Unit::Bytes,
    &[],
    "Bytes of records that were written to the journal, and synced.",
);
static SYNC: Family = Family::durations(
    "larimar_journal_sync_seconds",
    &[],
    "How long the write and the sync of a record take: what an acknowledged write waits for at least.",
);
static SEGMENTS: Family = Family::counter(
    "larimar_journal_segments_total",
    Unit::Count,
    &[],
    "Segments of the journal that were begun.",
);

/// The metrics of a journal.
pub(crate) struct JournalMetrics {
    pub(super) group_size: Histogram,
    pub(super) written_bytes: Counter,
    pub(super) sync: Histogram,
    pub(super) segments: Counter,
}

impl JournalMetrics {
    /// With nothing counted.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        JournalMetrics {
            group_size: metrics.histogram(&GROUP_SIZE, &[]),
            written_bytes: metrics.counter(&WRITTEN, &[]),
            sync: metrics.histogram(&SYNC, &[]),
            segments: metrics.counter(&SEGMENTS, &[]),
        }
    }
}
