//! What every response has: common headers, the version echoed, and errors in the requested shape.

use super::ServiceApi;
use crate::auth::shared_key::X_MS_VERSION;
use crate::error::ApiError;
use crate::reply::Reply;
use crate::reply::body::ResponseBody;
use crate::reply::negotiation::MetadataLevel;
use crate::request::request_id::RequestId;
use base::Ticks;
use bytes::Bytes;
use hyper::ext::ReasonPhrase;
use hyper::header::{
    CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderName, HeaderValue, SERVER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use service::parse_date_time;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

const X_MS_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
const X_MS_CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
const X_MS_ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");

/// The first version there was.
const OLDEST_VERSION: &[u8] = b"2009-04-14";

/// The newest version known when this was written. Newer ones are served the same, and logged once.
const NEWEST_KNOWN_VERSION: &[u8] = b"2026-10-06";

/// Headers that most responses have; more cost an allocation.
const HEADER_COUNT: usize = 12;

/// Newer versions that are remembered as logged, at most.
const VERSIONS_LOGGED_MAX: usize = 64;

/// Bytes of a client's request id at most.
const CLIENT_REQUEST_ID_SIZE_BYTES_MAX: usize = 1024;

/// The form of errors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ErrorShape {
    /// As an OData error.
    Json(MetadataLevel),
    /// As XML in the Table service's namespace.
    MetadataXml,
    /// As XML of the other services.
    Xml,
}

impl ErrorShape {
    /// The reply for `error`.
    pub(crate) fn reply(self, error: &ApiError, request_id: &str, now: Ticks) -> Reply {
        let status = error.status();
        let mut reply = match self {
            ErrorShape::Json(level) => {
                Reply::json(status, level.content_type(), error.json_body(request_id, now, None))
            }
            ErrorShape::MetadataXml => Reply::xml(status, error.metadata_xml_body(request_id, now)),
            ErrorShape::Xml => Reply::xml(status, error.xml_body(request_id, now)),
        };
        reply.header(X_MS_ERROR_CODE, HeaderValue::from_static(error.code.as_str()));
        if matches!(self, ErrorShape::Xml) {
            reply.reason = reason_phrase(error.message());
        }
        if let Some(source) = error.source() {
            let status = HeaderValue::from(source.status().as_u16());
            reply.header(HeaderName::from_static("x-ms-copy-source-status-code"), status);
            let code = HeaderValue::from_static(source.as_str());
            reply.header(HeaderName::from_static("x-ms-copy-source-error-code"), code);
        }
        if let Some(size) = error.whole_size() {
            reply.header_bytes(CONTENT_RANGE, format!("bytes */{size}").into_bytes());
        }
        if status == StatusCode::UNAUTHORIZED {
            reply.header(WWW_AUTHENTICATE, HeaderValue::from_static("SharedKey"));
        }
        reply
    }
}

/// The first line of an error's message: what the Blob and Queue services tell in the place of HTTP's own
/// words, and all that older clients have where there is no body.
fn reason_phrase(message: &str) -> Option<ReasonPhrase> {
    let line = message.lines().next().filter(|line| !line.is_empty())?;
    ReasonPhrase::try_from(line.as_bytes()).ok()
}

/// Puts a response together; the connection adds `Date`.
pub(crate) fn finish<S: ServiceApi>(
    reply: Reply,
    request: &HeaderMap,
    request_id: &RequestId,
) -> Response<ResponseBody> {
    let body = match reply.stream {
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

/// `YYYY-MM-DD`, a day that there is, not before the first version.
pub(crate) fn is_version(text: &[u8]) -> bool {
    text.len() == OLDEST_VERSION.len()
        && text >= OLDEST_VERSION
        && std::str::from_utf8(text).is_ok_and(|text| parse_date_time(text).is_ok())
}

/// Newer versions than known that were seen.
#[derive(Default)]
pub(crate) struct VersionLog {
    seen: Mutex<BTreeSet<Vec<u8>>>,
}

impl VersionLog {
    /// Refuses a version that is none; logs each newer one once.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(version) = headers.get(X_MS_VERSION) else {
            return Ok(());
        };
        let version = version.as_bytes();
        if !is_version(version) {
            return Err(ApiError::invalid_header(X_MS_VERSION.as_str(), version));
        }
        if version > NEWEST_KNOWN_VERSION {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.len() < VERSIONS_LOGGED_MAX && seen.insert(version.to_vec()) {
                tracing::info!(
                    "x-ms-version {} is newer than known; it is served as {}",
                    version.escape_ascii(),
                    NEWEST_KNOWN_VERSION.escape_ascii()
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for (version, good) in [
            ("2019-02-02", true),
            ("2009-04-14", true),
            ("2031-01-01", true),
            ("2024-02-29", true),
            ("2026-12-31", true),
            ("2025-02-29", false),
            ("2050-99-99", false),
            ("2026-00-10", false),
            ("2026-11-00", false),
            ("2026-06-31", false),
            ("", false),
            ("2008-01-01", false),
            ("2019-02", false),
            ("2019/02/02", false),
            ("latest", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(X_MS_VERSION, HeaderValue::from_static(version));
            assert_eq!(VersionLog::default().check(&headers).is_ok(), good, "{version}");
        }
        assert!(VersionLog::default().check(&HeaderMap::new()).is_ok());
    }
}
