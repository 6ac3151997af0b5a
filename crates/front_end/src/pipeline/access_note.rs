//! The note of a request for the access log, once its answer begins.

use super::request_metrics::Answered;
use super::{ServiceApi, Shared};
use crate::access::{
    Access, AccessLog, AccessOutcome, AccessTarget, AccessedRequest, RequestNotes, container_of,
    key_class_of, parse_trace_context, shown_header,
};
use crate::request::addressing::Address;
use crate::request::request_id::RequestId;
use base::Ticks;
use hyper::header::{HeaderName, USER_AGENT};
use hyper::http::request::Parts;

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

/// Tells of a request of this service.
pub(super) fn tell<S: ServiceApi>(
    log: &dyn AccessLog,
    (at, id, parts, address): (Ticks, &RequestId, &Parts, &Address<'_>),
    shared: &Shared,
    notes: &RequestNotes,
    answered: &Answered,
) {
    let operation = answered.operation;
    log.note(&Access {
        at,
        request: AccessedRequest {
            id: id.as_str(),
            client_id: shown_header(&parts.headers, CLIENT_REQUEST_ID),
            agent: shown_header(&parts.headers, USER_AGENT),
            trace: parts.headers.get(TRACE_PARENT).and_then(|header| parse_trace_context(header.as_bytes())),
        },
        target: AccessTarget {
            // An account that is not there may be anything that stands in a path.
            account: shared.accounts.find(address.account).map(|account| account.name()),
            service: S::LABEL,
            operation,
            container: container_of(address.resource),
            key_class: notes.class().unwrap_or_else(|| key_class_of(operation)),
        },
        outcome: AccessOutcome {
            status: answered.status.as_u16(),
            error_code: answered.error_code,
            request_bytes: answered.request_bytes,
            response_bytes: answered.response_bytes,
            rows: notes.rows(),
        },
        phases: notes.phases(answered.took_for),
    });
}
