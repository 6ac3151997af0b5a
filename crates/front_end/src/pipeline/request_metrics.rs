//! What is counted of requests: how many, with which outcome, how long they took, and their bytes.
//!
//! What always holds: an operation's handles are made with its first request; from then on a request costs a
//! look-up by the operation's name and some additions. Names are those of the code, never of a client.

use arc_swap::ArcSwap;
use base::metrics::{Counter, Family, Gauge, Histogram, Metrics, Unit};
use hyper::StatusCode;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

static REQUESTS: Family = Family::counter(
    "larimar_requests_total",
    Unit::Count,
    &["service", "operation", "status"],
    "Requests that were answered, by the class of their status code; operation is unknown where a request ended before it was known.",
);
static ERRORS: Family = Family::counter(
    "larimar_request_errors_total",
    Unit::Count,
    &["service", "code"],
    "Requests that were answered with an error, by its code.",
);
static DURATION: Family = Family::durations(
    "larimar_request_duration_seconds",
    &["service", "operation"],
    "From the head of a request to the beginning of its answer, the body's arrival included.",
);
static REQUEST_BYTES: Family = Family::counter(
    "larimar_request_body_bytes_total",
    Unit::Bytes,
    &["service"],
    "Bytes that requests announced for their bodies, of those that succeeded; a body of unknown length counts as 0.",
);
static RESPONSE_BYTES: Family = Family::counter(
    "larimar_response_body_bytes_total",
    Unit::Bytes,
    &["service"],
    "Bytes of bodies of answers.",
);
static UNDER_WAY: Family = Family::gauge(
    "larimar_requests_in_flight",
    Unit::Count,
    &["service"],
    "Requests that are being answered.",
);

/// The first digit of a status.
const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// What came of a request.
pub(super) struct Answered {
    pub(super) operation: &'static str,
    pub(super) status: StatusCode,
    pub(super) error_code: Option<&'static str>,
    pub(super) took_for: Duration,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
}

type Handles<T> = ArcSwap<BTreeMap<&'static str, T>>;

/// The metrics of one service's requests.
pub(crate) struct RequestMetrics {
    metrics: Metrics,
    service: &'static str,
    operations: Handles<Arc<OperationHandles>>,
    errors: Handles<Counter>,
    request_bytes: Counter,
    response_bytes: Counter,
    pub(super) under_way: Gauge,
}

struct OperationHandles {
    by_status: [OnceLock<Counter>; STATUS_CLASSES.len()],
    duration: Histogram,
}

impl RequestMetrics {
    /// With nothing counted.
    pub(crate) fn new(metrics: &Metrics, service: &'static str) -> Self {
        RequestMetrics {
            service,
            operations: ArcSwap::default(),
            errors: ArcSwap::default(),
            request_bytes: metrics.counter(&REQUEST_BYTES, &[service]),
            response_bytes: metrics.counter(&RESPONSE_BYTES, &[service]),
            under_way: metrics.gauge(&UNDER_WAY, &[service]),
            metrics: metrics.clone(),
        }
    }

    /// Counts a request.
    pub(super) fn note(&self, answered: &Answered) {
        let operation = answered.operation;
        let class = usize::from(answered.status.as_u16() / 100).clamp(1, STATUS_CLASSES.len()) - 1;
        let labels = [self.service, operation, STATUS_CLASSES[class]];
        let make = || {
            let duration = self.metrics.histogram(&DURATION, &[self.service, operation]);
            Arc::new(OperationHandles { by_status: Default::default(), duration })
        };
        record(&self.operations, operation, make, |handles| {
            handles.by_status[class].get_or_init(|| self.metrics.counter(&REQUESTS, &labels)).increment();
            handles.duration.record_duration(answered.took_for);
        });
        if let Some(code) = answered.error_code {
            let make = || self.metrics.counter(&ERRORS, &[self.service, code]);
            record(&self.errors, code, make, Counter::increment);
        }
        // Nothing was read of a refused request, whose announcement may be anything.
        if answered.request_bytes > 0 && answered.status.is_success() {
            self.request_bytes.add(answered.request_bytes);
        }
        if answered.response_bytes > 0 {
            self.response_bytes.add(answered.response_bytes);
        }
    }
}

/// Records with the handle of this name, made if it is the first one's.
fn record<T: Clone>(
    handles: &Handles<T>,
    name: &'static str,
    make: impl FnOnce() -> T,
    with: impl FnOnce(&T),
) {
    if let Some(handle) = handles.load().get(name) {
        return with(handle);
    }
    let made = make();
    with(&made);
    handles.rcu(|handles| {
        let mut handles = BTreeMap::clone(handles);
        handles.insert(name, made.clone());
        handles
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::metrics::Value;

    #[test]
    fn requests_are_counted_by_operation_status_and_code() {
        let metrics = Metrics::default();
        let requests = RequestMetrics::new(&metrics, "table");
        let answered = |operation, status, error_code| Answered {
            operation,
            status: StatusCode::from_u16(status).unwrap(),
            error_code,
            took_for: Duration::from_millis(3),
            request_bytes: 10,
            response_bytes: 7,
        };
        requests.note(&answered("GetEntity", 200, None));
        requests.note(&answered("GetEntity", 204, None));
        requests.note(&answered("GetEntity", 404, Some("ResourceNotFound")));
        requests.note(&answered("unknown", 403, Some("AuthenticationFailed")));
        let under_way = requests.under_way.hold();
        let mut found = Vec::new();
        for reading in metrics.read() {
            for series in reading.series {
                let count = match series.value {
                    Value::Number(count) => count,
                    Value::Histogram { cumulative, .. } => *cumulative.last().unwrap(),
                };
                found.push(format!("{} {} {count}", reading.family.name, series.labels.join(" ")));
            }
        }
        drop(under_way);
        assert_eq!(
            found,
            [
                "larimar_request_body_bytes_total table 20",
                "larimar_request_duration_seconds table GetEntity 3",
                "larimar_request_duration_seconds table unknown 1",
                "larimar_request_errors_total table AuthenticationFailed 1",
                "larimar_request_errors_total table ResourceNotFound 1",
                "larimar_requests_in_flight table 1",
                "larimar_requests_total table GetEntity 2xx 2",
                "larimar_requests_total table GetEntity 4xx 1",
                "larimar_requests_total table unknown 4xx 1",
                "larimar_response_body_bytes_total table 28",
            ]
        );
    }
}
