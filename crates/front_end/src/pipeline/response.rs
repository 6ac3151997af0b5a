//! What every response has: common headers, and the version echoed.
//!
//! What always holds: text of the client's is repeated only if a header can hold it.

use super::ServiceApi;
use crate::auth::shared_key::X_MS_VERSION;
use crate::reply::body::ResponseBody;
use crate::reply::{Reply, ReplyFault};
use crate::request::protocol_version::is_version;
use crate::request::request_id::RequestId;
use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, SERVER};
use hyper::{Response, StatusCode};

const X_MS_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
const X_MS_CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

/// Headers that most responses have; more cost an allocation.
const HEADER_COUNT: usize = 12;

/// Bytes of a client's request id at most.
const CLIENT_REQUEST_ID_SIZE_BYTES_MAX: usize = 1024;

/// Puts a response together; the connection adds `Date`.
pub(crate) fn finish<S: ServiceApi>(
    reply: Reply,
    request: &HeaderMap,
    request_id: &RequestId,
) -> Response<ResponseBody> {
    let body = match reply.stream {
        _ if reply.fault == Some(ReplyFault::Reset) => ResponseBody::reset(),
        Some(stream) => ResponseBody::stream(stream),
        None if reply.status == StatusCode::NO_CONTENT => ResponseBody::shown_empty(),
        None => ResponseBody::whole(Bytes::from(reply.body)),
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    let mut headers = HeaderMap::with_capacity(HEADER_COUNT);
    headers.insert(SERVER, HeaderValue::from_static(S::SERVER));
    S::put_headers(&mut headers);
    headers.insert(X_MS_REQUEST_ID, request_id.header_value());
    let version = request.get(X_MS_VERSION).filter(|version| is_version(version.as_bytes()));
    headers.insert(X_MS_VERSION, version.cloned().unwrap_or(HeaderValue::from_static(S::DEFAULT_VERSION)));
    if let Some(id) = request.get(X_MS_CLIENT_REQUEST_ID)
        && id.len() <= CLIENT_REQUEST_ID_SIZE_BYTES_MAX
        && id.as_bytes().iter().all(|byte| (0x20..0x7f).contains(byte))
    {
        headers.insert(X_MS_CLIENT_REQUEST_ID, id.clone());
    }
    for (name, value) in reply.headers {
        headers.insert(name, value);
    }
    if reply.status == StatusCode::NO_CONTENT {
        // As Azure: without it older .NET clients close the connection, and at times send a write again that
        // was done.
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    *response.headers_mut() = headers;
    if let Some(reason) = reply.reason {
        response.extensions_mut().insert(reason);
    }
    reply.cased_names.put_into(response.extensions_mut());
    response
}
