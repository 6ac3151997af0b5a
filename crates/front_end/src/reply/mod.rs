//! A reply before it is a whole response: status, its own headers and body.
//!
//! A reply to one request gets the common headers and becomes a response; a reply to an operation of a batch
//! becomes a part of one. Both come from the same code, so that they say the same.

pub(crate) mod body;
pub(crate) mod compression;
pub(crate) mod continuation;
pub(crate) mod error_shape;
pub(crate) mod negotiation;

use crate::reply::body::ReplyStream;
use crate::request::header_case::{CasedNames, METADATA_PREFIX};
use hyper::StatusCode;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};

/// `DataServiceVersion`
pub(crate) const DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static("dataserviceversion");

/// `DataServiceId`
pub(crate) const DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");

/// `Preference-Applied`
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// What is done to a reply on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyFault {
    /// Nothing of it is sent: the connection is reset.
    Reset,
    /// Of its body only so many bytes are sent; then the connection breaks off.
    CutBody(u64),
}

/// A reply.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: StatusCode,
    /// Headers of this reply, in the order they are written.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Names of metadata that have capitals.
    pub(crate) cased_names: CasedNames,
    /// The reason beside the status, if not HTTP's own words.
    pub(crate) reason: Option<ReasonPhrase>,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// The body if it is streamed; then `body` is empty.
    pub(crate) stream: Option<ReplyStream>,
    /// What is done to it on purpose.
    pub(crate) fault: Option<ReplyFault>,
}

impl Reply {
    /// A reply without headers and body.
    pub(crate) fn new(status: StatusCode) -> Self {
        Reply {
            status,
            headers: Vec::with_capacity(6),
            cased_names: CasedNames::default(),
            reason: None,
            body: Vec::new(),
            stream: None,
            fault: None,
        }
    }

    /// A reply with a JSON body.
    pub(crate) fn json(status: StatusCode, content_type: HeaderValue, body: Vec<u8>) -> Self {
        let mut reply = Reply::new(status);
        reply.header(DATA_SERVICE_VERSION, HeaderValue::from_static("3.0;"));
        reply.header(CONTENT_TYPE, content_type);
        reply.body = body;
        reply
    }

    /// A reply with an XML body.
    pub(crate) fn xml(status: StatusCode, body: Vec<u8>) -> Self {
        let mut reply = Reply::new(status);
        reply.header(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        reply.body = body;
        reply
    }

    /// The same, whose body breaks off after `size` bytes, although its whole length is announced.
    pub(crate) fn cut_after(mut self, size: u64) -> Self {
        let whole = self.stream.take().unwrap_or_else(|| ReplyStream::whole(std::mem::take(&mut self.body)));
        self.stream = Some(whole.cut_after(size));
        self
    }

    /// Adds a header.
    pub(crate) fn header(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.push((name, value));
    }

    /// Adds a header with a value that was put together; left out if a header can't hold it.
    pub(crate) fn header_bytes(&mut self, name: HeaderName, value: Vec<u8>) {
        if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(value)) {
            self.header(name, value);
        }
    }

    /// Adds the headers of metadata: names and values.
    pub(crate) fn metadata(&mut self, metadata: &[(String, String)]) {
        for (name, value) in metadata {
            if let Ok(header) = HeaderName::try_from(format!("{METADATA_PREFIX}{name}")) {
                self.header_bytes(header, value.clone().into_bytes());
                self.cased_names.add(name);
            }
        }
    }
}
