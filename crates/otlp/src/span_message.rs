//! Spans as the protocol's messages. Attributes have the names of OpenTelemetry's conventions where these
//! have one (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/>), else `larimar.…`.

use crate::spans::Span;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as SpanMessage, Status};
use std::time::Duration;

const SERVICE: &str = "larimar";

/// The process, which each message names.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) version: &'static str,
    pub(crate) instance: String,
}

impl Process {
    pub(crate) fn resource(&self) -> Resource {
        let attributes = vec![
            text("service.name", SERVICE),
            text("service.version", self.version),
            text("service.instance.id", &self.instance),
        ];
        Resource { attributes, ..Resource::default() }
    }

    pub(crate) fn scope(&self) -> InstrumentationScope {
        InstrumentationScope {
            name: SERVICE.to_owned(),
            version: self.version.to_owned(),
            ..Default::default()
        }
    }
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

pub(crate) fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn milliseconds(key: &str, time: Duration) -> KeyValue {
    attribute(key, Value::DoubleValue(time.as_secs_f64() * 1e3))
}

/// A delivery of spans.
pub(crate) fn traces_of(process: &Process, spans: &[Span]) -> ExportTraceServiceRequest {
    let scope_spans = ScopeSpans {
        scope: Some(process.scope()),
        spans: spans.iter().map(message).collect(),
        ..ScopeSpans::default()
    };
    let resource_spans = ResourceSpans {
        resource: Some(process.resource()),
        scope_spans: vec![scope_spans],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

fn message(span: &Span) -> SpanMessage {
    let took_ns = u64::try_from(span.phases.total.as_nanos()).unwrap_or(u64::MAX);
    // Of servers' spans only what is the server's fault is an error.
    let status = (span.status >= 500).then(|| Status {
        message: span.error_code.unwrap_or_default().to_owned(),
        code: StatusCode::Error.into(),
    });
    SpanMessage {
        trace_id: span.sampled.trace_id.to_vec(),
        span_id: span.id.to_vec(),
        parent_span_id: span.sampled.parent_id.map(|id| id.to_vec()).unwrap_or_default(),
        name: format!("{} {}", span.service, span.operation),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: span.began_at_ns,
        end_time_unix_nano: span.began_at_ns.saturating_add(took_ns),
        attributes: attributes(span),
        status,
        ..SpanMessage::default()
    }
}

fn attributes(span: &Span) -> Vec<KeyValue> {
    let mut all = vec![
        number("http.response.status_code", u64::from(span.status)),
        number("http.request.body.size", span.request_bytes),
        number("http.response.body.size", span.response_bytes),
        text("azure.service.request.id", &span.request_id),
        text("larimar.service", span.service),
        text("larimar.operation", span.operation),
        text("larimar.key_class", span.key_class),
        milliseconds("larimar.authentication_ms", span.phases.authentication),
        milliseconds("larimar.turn_ms", span.phases.turn),
        milliseconds("larimar.body_ms", span.phases.body),
        milliseconds("larimar.work_ms", span.phases.work),
    ];
    let texts = [
        ("error.type", span.error_code),
        ("user_agent.original", span.agent.as_deref()),
        ("larimar.client_request_id", span.client_id.as_deref()),
        ("larimar.account", span.account.as_deref()),
        ("larimar.container", span.container.as_deref()),
    ];
    all.extend(texts.into_iter().filter_map(|(key, value)| Some(text(key, value?))));
    if let Some(rows) = span.rows {
        all.push(number("larimar.rows_read", rows.read));
        all.push(number("larimar.rows_returned", rows.returned));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Sampled;
    use front_end::{AccessedRows, Phases};

    fn span(status: u16, error_code: Option<&'static str>) -> Span {
        Span {
            sampled: Sampled { trace_id: [1; 16], parent_id: Some([2; 8]) },
            id: [3; 8],
            began_at_ns: 1_000,
            phases: Phases {
                total: Duration::from_micros(5),
                work: Duration::from_micros(4),
                ..Phases::default()
            },
            request_id: "r".to_owned(),
            client_id: None,
            agent: Some("agent".to_owned()),
            account: Some("a".to_owned()),
            container: Some("T".to_owned()),
            service: "table",
            operation: "GetEntity",
            key_class: "point",
            status,
            error_code,
            request_bytes: 1,
            response_bytes: 2,
            rows: Some(AccessedRows { read: 3, returned: 4 }),
        }
    }

    fn value_of(message: &SpanMessage, key: &str) -> Option<Value> {
        let attribute = message.attributes.iter().find(|attribute| attribute.key == key)?;
        attribute.value.as_ref()?.value.clone()
    }

    #[test]
    fn a_request_is_a_server_span_below_its_callers() {
        let process = Process { version: "1", instance: "i".to_owned() };
        let mut root = span(200, None);
        root.sampled.parent_id = None;
        let request = traces_of(&process, &[span(404, Some("ResourceNotFound")), root]);
        let spans = &request.resource_spans[0].scope_spans[0].spans;
        let [below, root] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!((below.trace_id.len(), below.span_id.len(), below.parent_span_id.len()), (16, 8, 8));
        assert_eq!(root.parent_span_id.len(), 0);
        assert_eq!((below.start_time_unix_nano, below.end_time_unix_nano), (1_000, 6_000));
        assert_eq!((below.name.as_str(), below.kind()), ("table GetEntity", SpanKind::Server));
        assert_eq!(value_of(below, "larimar.rows_read"), Some(Value::IntValue(3)));
        assert_eq!(value_of(below, "larimar.work_ms"), Some(Value::DoubleValue(0.004)));
        assert_eq!(value_of(below, "error.type"), Some(Value::StringValue("ResourceNotFound".to_owned())));
        assert_eq!((value_of(root, "error.type"), value_of(root, "larimar.client_request_id")), (None, None));
    }

    #[test]
    fn only_what_is_the_servers_fault_is_an_error() {
        let process = Process { version: "1", instance: "i".to_owned() };
        for (status, is_error) in [(200, false), (404, false), (412, false), (500, true), (503, true)] {
            let request = traces_of(&process, &[span(status, None)]);
            let message = &request.resource_spans[0].scope_spans[0].spans[0];
            assert_eq!(message.status.is_some(), is_error, "{status}");
        }
    }
}
