//! What is counted of connections.
//!
//! What always holds: handles are made once, where the layer is opened.

use base::metrics::{Counter, Family, Gauge, Held, Metrics, Unit};

static OPEN: Family =
    Family::gauge("larimar_connections", Unit::Count, &["service"], "Connections that are open.");
static MAX: Family = Family::gauge(
    "larimar_connections_max",
    Unit::Count,
    &["service"],
    "Connections that may be open; further ones wait in the backlog.",
);
static OPENED: Family = Family::counter(
    "larimar_connections_opened_total",
    Unit::Count,
    &["service"],
    "Connections that were accepted.",
);
static REFUSED: Family = Family::counter(
    "larimar_connections_refused_total",
    Unit::Count,
    &["service"],
    "Connections that were closed at once, because their client held as many as one may.",
);

/// The metrics of one service's connections.
pub(crate) struct ConnectionMetrics {
    open: Gauge,
    opened: Counter,
    pub(super) refused: Counter,
}

impl ConnectionMetrics {
    /// With nothing counted, of a service that takes `connections_max` connections.
    pub(crate) fn new(metrics: &Metrics, service: &'static str, connections_max: usize) -> Self {
        metrics.gauge(&MAX, &[service]).set(connections_max as u64);
        ConnectionMetrics {
            open: metrics.gauge(&OPEN, &[service]),
            opened: metrics.counter(&OPENED, &[service]),
            refused: metrics.counter(&REFUSED, &[service]),
        }
    }

    /// One is accepted, and open until what is returned is dropped.
    pub(super) fn open(&self) -> Held {
        self.opened.increment();
        self.open.hold()
    }
}
