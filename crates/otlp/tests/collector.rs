//! The exporter before a collector of the test's own: what it sends, how often it tries, what it counts.
// Listens on a socket by nature; it is no part of the server.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use base::connector::SystemConnector;
use base::memory_disk::MemoryDisk;
use base::metrics::Value;
use base::{Environment, Metrics, Ticks};
use front_end::{Access, AccessLog, AccessOutcome, AccessTarget, AccessedRequest, Phases, TraceContext};
use http_body_util::{BodyExt, Full};
use http_client::{Endpoint, Proxies};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use otlp::{ExportSettings, ExportSurroundings, SpanRecorder};
use prost::Message;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A delivery: its path, the header `x-tenant` and its body.
type Delivery = (String, String, Bytes);

/// Answers with these statuses, then with 200.
async fn collector(statuses: Vec<u16>) -> (Endpoint, mpsc::UnboundedReceiver<Delivery>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/prefix/", listener.local_addr().expect("an address"));
    let (sender, receiver) = mpsc::unbounded_channel();
    let statuses = Arc::new(parking_lot::Mutex::new(statuses.into_iter()));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (sender, statuses) = (sender.clone(), statuses.clone());
            let answer = service_fn(move |request: Request<Incoming>| {
                let (sender, status) = (sender.clone(), statuses.lock().next().unwrap_or(200));
                async move {
                    let path = request.uri().path().to_owned();
                    let tenant =
                        request.headers().get("x-tenant").map(|value| value.to_str().unwrap().to_owned());
                    let body = request.into_body().collect().await?.to_bytes();
                    let _ = sender.send((path, tenant.unwrap_or_default(), body));
                    let answer = Response::builder().status(status).body(Full::new(Bytes::new()));
                    Ok::<_, hyper::Error>(answer.expect("an answer"))
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), answer),
            );
        }
    });
    (Endpoint::parse(&url).expect("a URL"), receiver)
}

fn start(endpoint: Endpoint, metrics_every: Duration) -> (Arc<SpanRecorder>, Environment) {
    let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let settings = ExportSettings {
        endpoint: Some(endpoint),
        headers: vec![("x-tenant".to_owned(), "a".to_owned())],
        share: 0.0,
        metrics_every,
        proxies: Proxies::none(),
    };
    let surroundings = ExportSurroundings {
        env: env.clone(),
        connector: Arc::new(SystemConnector),
        version: "test",
        instance: "one".to_owned(),
    };
    let recorder = otlp::start(&settings, &surroundings).expect("it starts").expect("a recorder");
    (recorder, env)
}

/// A request of this number, sampled by its client.
fn note(recorder: &SpanRecorder, number: u8) {
    recorder.note(&Access {
        at: Ticks(0),
        request: AccessedRequest {
            id: "id",
            client_id: None,
            agent: None,
            trace: Some(TraceContext { trace_id: [number; 16], parent_id: [1; 8], is_sampled: true }),
        },
        target: AccessTarget {
            account: Some("a"),
            service: "table",
            operation: "GetEntity",
            container: None,
            key_class: "point",
        },
        outcome: AccessOutcome {
            status: 200,
            error_code: None,
            request_bytes: 0,
            response_bytes: 0,
            rows: None,
        },
        phases: Phases::default(),
    });
}

async fn next(receiver: &mut mpsc::UnboundedReceiver<Delivery>) -> Delivery {
    timeout(Duration::from_secs(30), receiver.recv()).await.expect("in time").expect("a delivery")
}

/// The series of a family by their labels.
fn counts(metrics: &Metrics, family: &str) -> BTreeMap<String, u64> {
    let readings = metrics.read();
    let reading = readings.iter().find(|reading| reading.family.name == family).expect("a family");
    let number = |value: &Value| match value {
        Value::Number(number) => *number,
        Value::Histogram { .. } => unreachable!("a counter"),
    };
    reading.series.iter().map(|series| (series.labels.join(" "), number(&series.value))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_and_metrics_arrive_with_their_headers() {
    let (endpoint, mut deliveries) = collector(Vec::new()).await;
    let (recorder, env) = start(endpoint, Duration::from_secs(2));
    (1..=3).for_each(|number| note(&recorder, number));
    let (path, tenant, body) = next(&mut deliveries).await;
    assert_eq!((path.as_str(), tenant.as_str()), ("/prefix/v1/traces", "a"));
    let request = ExportTraceServiceRequest::decode(body).expect("a message");
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    assert_eq!(spans.iter().map(|span| span.trace_id[0]).collect::<Vec<_>>(), [1, 2, 3]);
    let (path, _, body) = next(&mut deliveries).await;
    assert_eq!(path, "/prefix/v1/metrics");
    let request = ExportMetricsServiceRequest::decode(body).expect("a message");
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    assert!(metrics.iter().any(|metric| metric.name == "larimar_otlp_spans_total"), "{metrics:?}");
    assert_eq!(counts(&env.metrics, "larimar_otlp_spans_total")["sent"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_collector_is_tried_again_and_a_refusal_is_not() {
    let (endpoint, mut deliveries) = collector(vec![503, 429, 200, 400]).await;
    let (recorder, env) = start(endpoint, Duration::ZERO);
    note(&recorder, 1);
    let first = next(&mut deliveries).await;
    assert_eq!((next(&mut deliveries).await, next(&mut deliveries).await), (first.clone(), first));
    // This one is refused, and the next is taken.
    for number in [2, 3] {
        note(&recorder, number);
        let (.., body) = next(&mut deliveries).await;
        let request = ExportTraceServiceRequest::decode(body).expect("a message");
        assert_eq!(request.resource_spans[0].scope_spans[0].spans[0].trace_id[0], number);
    }
    let settled = async {
        while counts(&env.metrics, "larimar_otlp_deliveries_total")["traces taken"] < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(30), settled).await.expect("in time");
    let spans = counts(&env.metrics, "larimar_otlp_spans_total");
    assert_eq!((spans["sent"], spans["lost"]), (2, 1));
    assert_eq!(counts(&env.metrics, "larimar_otlp_deliveries_total")["traces failed"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_when_the_process_ends_is_sent() {
    let (endpoint, mut receiver) = collector(Vec::new()).await;
    let (recorder, env) = start(endpoint, Duration::from_secs(3600));
    note(&recorder, 7);
    recorder.close(&*env.clock).await;
    let mut paths = Vec::new();
    while let Ok((path, ..)) = receiver.try_recv() {
        paths.push(path);
    }
    assert_eq!(paths, ["/prefix/v1/traces", "/prefix/v1/metrics"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_does_not_answer_keeps_no_process() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let (recorder, env) = start(Endpoint::parse(&url).expect("a URL"), Duration::from_secs(3600));
    note(&recorder, 7);
    timeout(Duration::from_secs(30), recorder.close(&*env.clock)).await.expect("it is given up");
}
