//! What became of spans and deliveries, as metrics.

use base::Metrics;
use base::metrics::{Counter, Family, Unit};

static SPANS: Family = Family::counter(
    "larimar_otlp_spans_total",
    Unit::Count,
    &["outcome"],
    "Spans of requests by what became of them: sent to the collector, or lost because they came too fast or the collector did not take them.",
);
static DELIVERIES: Family = Family::counter(
    "larimar_otlp_deliveries_total",
    Unit::Count,
    &["signal", "outcome"],
    "Batches of traces or metrics that the collector took, or that failed after all tries.",
);

/// What became of a signal's batches.
#[derive(Debug)]
pub(crate) struct DeliveryCounts {
    pub(crate) taken: Counter,
    pub(crate) failed: Counter,
}

/// The counters of an exporter.
#[derive(Debug)]
pub(crate) struct ExportCounts {
    pub(crate) sent_spans: Counter,
    pub(crate) lost_spans: Counter,
    pub(crate) traces: DeliveryCounts,
    pub(crate) metrics: DeliveryCounts,
}

impl ExportCounts {
    /// Of an exporter that starts, or is off.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let deliveries = |signal: &str| DeliveryCounts {
            taken: metrics.counter(&DELIVERIES, &[signal, "taken"]),
            failed: metrics.counter(&DELIVERIES, &[signal, "failed"]),
        };
        ExportCounts {
            sent_spans: metrics.counter(&SPANS, &["sent"]),
            lost_spans: metrics.counter(&SPANS, &["lost"]),
            traces: deliveries("traces"),
            metrics: deliveries("metrics"),
        }
    }
}
