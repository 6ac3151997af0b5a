//! Errors as replies, in the form that the client reads.
//!
//! What always holds: the code is in a header in each form, so that clients find it where there is no body.

use crate::error::ApiError;
use crate::error::injected::X_LARIMAR_SIMULATED;
use crate::reply::negotiation::MetadataLevel;
use crate::reply::{Reply, ReplyFault};
use base::Ticks;
use hyper::StatusCode;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_RANGE, HeaderName, HeaderValue, WWW_AUTHENTICATE};

const X_MS_ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");

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
        match error.injection() {
            None => reply.header(X_MS_ERROR_CODE, HeaderValue::from_static(error.code.as_str())),
            Some(injected) => {
                reply.header_bytes(X_MS_ERROR_CODE, error.code_text().as_bytes().to_vec());
                reply.header(X_LARIMAR_SIMULATED, injected.mark.clone());
                reply.fault = injected.resets.then_some(ReplyFault::Reset);
            }
        }
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

/// The first line of an error's message: what the Blob and Queue services send in place of HTTP's own
/// words, and all that older clients have where there is no body.
fn reason_phrase(message: &str) -> Option<ReasonPhrase> {
    let line = message.lines().next().filter(|line| !line.is_empty())?;
    ReasonPhrase::try_from(line.as_bytes()).ok()
}
