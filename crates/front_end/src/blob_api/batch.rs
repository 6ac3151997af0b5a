//! Blob batches: up to 256 deletions or tier changes in one request, each with credentials of its own.
//!
//! ```text
//! --batch_X                             --batchresponse_Y
//! Content-Type: application/http        Content-Type: application/http
//! Content-ID: 0                         Content-ID: 0
//!
//! DELETE /acct/box/a? HTTP/1.1          HTTP/1.1 202 Accepted
//! Authorization: …                      x-ms-error-code: …
//! ```
//!
//! What always holds: parts are independent, none may do what its own credentials do not allow, and all of a
//! batch are of one kind. When the time of the batch is over, the parts that are left fail; a part may ask
//! for less time than that. Under simulation each part is admitted by itself, and its faults are its own; one
//! that resets the connection or cuts it off does so to the whole answer.

use super::admit::admit_route;
use super::blob_request::BlobRequest;
use super::headers::Headers;
use super::headers::request_headers::text;
use super::route::Route;
use super::target::Target;
use super::{BlobApi, blob_write};
use crate::auth::delegation::BoundRequest;
use crate::auth::grant::Grant;
use crate::auth::{Credentials, SasRequest, SharedKeyRequest, credentials, verify_sas, verify_shared_key};
use crate::batch::boundary_of;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{
    ApiRequest, Environment, IncomingBody, RequestBody, ServiceApi, check_timeout, requested_time_limit,
    timeout_of, within,
};
use crate::reply::error_shape::ErrorShape;
use crate::reply::{Reply, ReplyFault};
use crate::request::addressing::Address;
use crate::request::query_string::QueryParameters;
use crate::request::request_id::RequestId;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use std::str::FromStr;
use std::time::Duration;

/// Parts of a batch at most.
const PARTS_MAX: usize = 256;
/// Bytes of a batch at most.
const SIZE_BYTES_MAX: usize = 4 << 20;
/// How long a batch may take.
const BATCH_FOR_MAX: Duration = Duration::from_secs(120);
/// Headers of a part at most.
const PART_HEADERS_MAX: usize = 64;

/// What ends the body of a part.
const LINE_END: &[u8] = b"\r\n";

/// One request of a batch.
struct Part {
    content_id: Option<String>,
    request: Parts,
}

fn malformed() -> ApiError {
    ErrorCode::InvalidInput.into()
}

/// Reads the parts between boundaries.
fn read(body: &[u8], boundary: &str) -> Result<Vec<Part>, ApiError> {
    let text = std::str::from_utf8(body).map_err(|_| malformed())?;
    let delimiter = format!("--{boundary}");
    let mut parts = Vec::new();
    for section in text.split(delimiter.as_str()).skip(1) {
        if section.starts_with("--") {
            break;
        }
        if parts.len() == PARTS_MAX {
            return Err(ErrorCode::ExceedsMaxBatchRequestCount.into());
        }
        parts.push(read_part(section)?);
    }
    if parts.is_empty() { Err(malformed()) } else { Ok(parts) }
}

fn read_part(section: &str) -> Result<Part, ApiError> {
    // The first line is the rest of the boundary's.
    let mut lines = section.lines().map(str::trim_end).skip(1);
    let mut content_id = None;
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-id")
        {
            content_id = Some(value.trim().to_owned());
        }
    }
    let mut lines = lines.skip_while(|line| line.is_empty());
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().ok_or_else(malformed)?);
    let mut builder = Request::builder().method(method).uri(target);
    for (count, line) in lines.take_while(|line| !line.is_empty()).enumerate() {
        let (name, value) = line.split_once(':').ok_or_else(malformed)?;
        let name = HeaderName::from_str(name.trim()).map_err(|_| malformed())?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| malformed())?;
        if count >= PART_HEADERS_MAX {
            return Err(malformed());
        }
        // A part has no version, which would say that an empty body's length is signed as nothing.
        if name != CONTENT_LENGTH || value != "0" {
            builder = builder.header(name, value);
        }
    }
    let (request, ()) = builder.body(()).map_err(|_| malformed())?.into_parts();
    Ok(Part { content_id, request })
}

/// How long a batch may take, by its time-out.
pub(crate) fn time_limit(parts: &Parts) -> Duration {
    requested_time_limit(parts, BATCH_FOR_MAX)
}

/// Answers a batch.
pub(crate) async fn run<B: RequestBody>(
    api: &BlobApi,
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    let content_type = context.headers().get(CONTENT_TYPE.as_str()).and_then(|value| value.to_str().ok());
    let boundary = content_type.and_then(boundary_of).ok_or_else(malformed)?.to_owned();
    let outer = context.request;
    let clock = outer.environment.clock;
    let deadline = clock.monotonic() + time_limit(outer.parts);
    let whole = within(clock, deadline, body.read_up_to(SIZE_BYTES_MAX)).await?;
    let response_boundary = format!("batchresponse_{}", RequestId::new(outer.environment.random).as_str());
    let version = text(context.headers(), "x-ms-version").unwrap_or(BlobApi::DEFAULT_VERSION);
    let mut out = Vec::new();
    let mut kind = None;
    let mut fault = None;
    let parts = match read(&whole.bytes, &boundary) {
        Ok(parts) => parts,
        // Told in the place of the first part, and nothing is done (observed).
        Err(error) if error.code == ErrorCode::ExceedsMaxBatchRequestCount => {
            let id = RequestId::new(outer.environment.random);
            let reply = ErrorShape::Xml.reply(&error, id.as_str(), outer.now);
            put_part(&mut out, &response_boundary, version, None, (id.as_str(), &reply));
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    for part in parts {
        let id = RequestId::new(outer.environment.random);
        // Boxed, as that of the whole request.
        let simulated = outer.environment.simulated.map(|simulated| Box::new(simulated.part()));
        let environment = Environment { simulated: simulated.as_deref(), ..outer.environment };
        let mut result = answer_part(api, context, environment, &part.request, &mut kind, deadline).await;
        if let Some(simulated) = &simulated {
            result = simulated.finish_part(result);
        }
        let reply = result.unwrap_or_else(|error| ErrorShape::Xml.reply(&error, id.as_str(), outer.now));
        put_part(&mut out, &response_boundary, version, part.content_id.as_deref(), (id.as_str(), &reply));
        fault = fault_of_whole(fault, reply.fault, out.len() as u64, reply.body.len() as u64);
    }
    // The last bytes: one client takes what follows them, were it the end of a line, for a part that it can't
    // read.
    out.extend_from_slice(format!("--{response_boundary}--").as_bytes());
    let mut reply = Reply::new(StatusCode::ACCEPTED);
    let content_type = format!("multipart/mixed; boundary={response_boundary}");
    reply.header_bytes(CONTENT_TYPE, content_type.into_bytes());
    reply.body = out;
    reply.fault = fault;
    Ok(reply)
}

/// What is done on purpose to the whole answer, now that it ends, at `end`, with a part whose body has `size`
/// bytes. Nothing of an answer is sent whose connection is reset; otherwise the first cut is the one that is
/// seen.
fn fault_of_whole(
    before: Option<ReplyFault>,
    part: Option<ReplyFault>,
    end: u64,
    size: u64,
) -> Option<ReplyFault> {
    match (before, part) {
        (Some(ReplyFault::Reset), _) | (_, Some(ReplyFault::Reset)) => Some(ReplyFault::Reset),
        (None, Some(ReplyFault::CutBody(_))) if size == 0 => Some(ReplyFault::CutBody(end)),
        (None, Some(ReplyFault::CutBody(left))) => {
            let begin = end.saturating_sub(size + LINE_END.len() as u64);
            Some(ReplyFault::CutBody(begin + left.min(size)))
        }
        (before, _) => before,
    }
}

fn put_part(
    out: &mut Vec<u8>,
    boundary: &str,
    version: &str,
    content_id: Option<&str>,
    (id, reply): (&str, &Reply),
) {
    out.extend_from_slice(format!("--{boundary}\r\nContent-Type: application/http\r\n").as_bytes());
    if let Some(content_id) = content_id {
        out.extend_from_slice(format!("Content-ID: {content_id}\r\n").as_bytes());
    }
    // As Azure's: older .NET clients read as many characters as a body has bytes, and find the next part only
    // with it.
    let mark: &[u8] = if reply.body.is_empty() { b"" } else { "\u{feff}".as_bytes() };
    let reason = reply.status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(format!("\r\nHTTP/1.1 {} {reason}\r\n", reply.status.as_u16()).as_bytes());
    for (name, value) in &reply.headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("x-ms-request-id: {id}\r\nx-ms-version: {version}\r\n").as_bytes());
    if !reply.body.is_empty() {
        let length = mark.len() + reply.body.len();
        out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    if !reply.body.is_empty() {
        out.extend_from_slice(mark);
        out.extend_from_slice(&reply.body);
        out.extend_from_slice(LINE_END);
    }
}

async fn answer_part(
    api: &BlobApi,
    context: &BlobRequest<'_>,
    environment: Environment<'_>,
    parts: &Parts,
    kind: &mut Option<Route>,
    deadline: Duration,
) -> Result<Reply, ApiError> {
    let outer = context.request;
    if deadline <= outer.environment.clock.monotonic() {
        return Err(ErrorCode::OperationTimedOut.into());
    }
    let address = Address::parse(outer.host, parts.uri.path(), BlobApi::LABEL);
    if address.account != outer.account {
        return Err(ErrorCode::AuthenticationFailed.into());
    }
    let query =
        QueryParameters::parse(parts.uri.query()).map_err(|_| ApiError::new(ErrorCode::InvalidUri))?;
    let grant =
        within(outer.environment.clock, deadline, authenticate(api, outer, parts, &address, &query)).await?;
    check_timeout(&query)?;
    let requested = timeout_of(&query).map(|requested| outer.environment.clock.monotonic() + requested);
    let deadline = requested.map_or(deadline, |requested| requested.min(deadline));
    let request = ApiRequest { parts, address, query: &query, grant: &grant, environment, ..*outer };
    let target = Target::parse(request.resource(), &query)?;
    let headers = Headers::of_request(parts);
    let route = Route::find(&parts.method, &target, &query, headers)?;
    if kind.is_some_and(|kind| kind != route) {
        return Err(malformed());
    }
    *kind = Some(route);
    if let Some(container) = context.target.container()
        && target.container() != Some(container)
    {
        return Err(malformed());
    }
    let inner = BlobRequest { service: context.service, request: &request, route, target: &target, headers };
    within(outer.environment.clock, deadline, async {
        api.authorise(&inner, route).await?;
        request.check_secondary(route.is_read())?;
        if let Some(simulated) = request.environment.simulated {
            Box::pin(admit_route(simulated, &inner)).await?;
        }
        match route {
            Route::DeleteBlob => blob_write::delete(&inner).await,
            Route::SetTier => blob_write::set_tier(&inner).await,
            _ => Err(malformed()),
        }
    })
    .await
}

async fn authenticate(
    api: &BlobApi,
    outer: &ApiRequest<'_>,
    parts: &Parts,
    address: &Address<'_>,
    query: &QueryParameters<'_>,
) -> Result<Grant, ApiError> {
    match credentials(&parts.headers, query)? {
        Credentials::SharedKey { scheme, account, signature } => {
            let signed = SharedKeyRequest {
                service: BlobApi::SIGNED,
                address,
                method: parts.method.as_str(),
                query,
                headers: &parts.headers,
            };
            verify_shared_key(outer.keys, &signed, scheme, account, signature, outer.now)?;
            Ok(Grant::Everything)
        }
        Credentials::Sas(token) => {
            let request = SasRequest {
                token,
                resource: BlobApi::signed_resource(address, query),
                bound: BoundRequest { headers: &parts.headers, query },
                peer: outer.connection.peer,
                encrypted: outer.connection.encrypted,
                now: outer.now,
            };
            let policies = match request.policy_id() {
                None => Vec::new(),
                Some(_) => api.policies(outer.account, &request.resource.container).await?,
            };
            verify_sas(outer.keys, &request, &policies)
        }
        // Whoever bears a token has shown it for the batch.
        Credentials::Bearer(_) => match (outer.grant, outer.principal) {
            (Grant::Everything, Some(_)) => Ok(Grant::Everything),
            _ => Err(ErrorCode::AuthenticationFailed.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_parts_are_passed_on() {
        use ReplyFault::{CutBody, Reset};
        for (before, part, size, expected) in [
            (None, None, 0, None),
            (None, Some(Reset), 40, Some(Reset)),
            (Some(Reset), None, 40, Some(Reset)),
            (Some(CutBody(7)), Some(Reset), 0, Some(Reset)),
            (Some(Reset), Some(CutBody(7)), 0, Some(Reset)),
            (Some(CutBody(7)), None, 0, Some(CutBody(7))),
            (Some(CutBody(7)), Some(CutBody(0)), 0, Some(CutBody(7))),
            (None, Some(CutBody(7)), 0, Some(CutBody(100))),
            // The body is from 58 to 98.
            (None, Some(CutBody(7)), 40, Some(CutBody(65))),
            (None, Some(CutBody(90)), 40, Some(CutBody(98))),
        ] {
            assert_eq!(fault_of_whole(before, part, 100, size), expected, "{before:?} {part:?} {size}");
        }
    }

    #[test]
    fn parts() {
        let body = "--b\r\nContent-Type: application/http\r\nContent-ID: 7\r\n\r\nDELETE /acct/box/a? HTTP/1.1\r\n\
                    x-ms-date: now\r\nContent-Length: 0\r\n\r\n\r\n--b\r\n\r\nPUT /acct/box/b?comp=tier HTTP/1.1\r\n\r\n--b--";
        let parts = read(body.as_bytes(), "b").unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!((parts[0].content_id.as_deref(), parts[0].request.uri.path()), (Some("7"), "/acct/box/a"));
        assert!(parts[0].request.headers.contains_key("x-ms-date"));
        for bad in
            ["", "--b--", "--b\r\n\r\nDELETE\r\n--b--", "--b\r\n\r\nDELETE /a HTTP/1.1\r\nno header\r\n--b--"]
        {
            assert!(read(bad.as_bytes(), "b").is_err(), "{bad:?}");
        }
    }
}
