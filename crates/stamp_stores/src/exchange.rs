//! One request to one endpoint, and its answer.
//!
//! What always holds: one call is one request on the wire; an error says whether it may have been done;
//! answers that are read whole are bounded in size.

use bytes::Bytes;
use http_body_util::Full;
use http_client::{AnswerBody, ConnectionSettings, Dialer, Endpoint, NoAnswer, Pool, Surroundings};
use hyper::header::{
    CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::{Method, Request, Uri};
use retry::Outcome;
use std::sync::Arc;
use std::time::Duration;

const AGENT: &str = concat!("larimar-stamp/", env!("CARGO_PKG_VERSION"));

/// A request, below its endpoint.
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    /// Path and query, encoded, as they are sent: with the path of the endpoint.
    pub(crate) target: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// An answer whose body is still coming.
pub(crate) struct OpenAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: AnswerBody,
}

/// No answer, or none that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Nothing of the request left this process.
    Unsent(String),
    /// It may have been done.
    MayBeDone(String),
}

impl Lost {
    pub(crate) fn what(&self) -> &str {
        match self {
            Lost::Unsent(what) | Lost::MayBeDone(what) => what,
        }
    }
}

impl From<NoAnswer> for Lost {
    fn from(error: NoAnswer) -> Self {
        match error.outcome {
            Outcome::Unsent => Lost::Unsent(error.what),
            _ => Lost::MayBeDone(error.what),
        }
    }
}

/// Connections to one endpoint.
#[derive(Clone)]
pub(crate) struct Service {
    pool: Arc<Pool>,
    answer_for: Duration,
    part_for: Duration,
}

impl Service {
    /// No connection yet. The head of an answer may take `answer_for`.
    pub(crate) fn new(
        endpoint: Endpoint,
        dialer: Arc<Dialer>,
        surroundings: &Surroundings,
        connections: ConnectionSettings,
        answer_for: Duration,
    ) -> Self {
        let part_for = connections.part_for;
        Service { pool: Pool::new(endpoint, dialer, surroundings.clone(), connections), answer_for, part_for }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.pool.endpoint
    }

    /// Sends a request, and waits for the head of its answer.
    pub(crate) async fn open(&self, outgoing: Outgoing) -> Result<OpenAnswer, Lost> {
        let request = self.request(outgoing)?;
        let (response, lease) = self.pool.exchange(request, self.answer_for).await?;
        let (head, incoming) = response.into_parts();
        let clock = self.pool.surroundings.clock.clone();
        let body = AnswerBody::new(incoming, lease, clock, self.part_for);
        Ok(OpenAnswer { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// Sends a request, and reads its answer whole, at most `size_max` bytes of body.
    pub(crate) async fn send(&self, outgoing: Outgoing, size_max: usize) -> Result<Answer, Lost> {
        let OpenAnswer { status, body, .. } = self.open(outgoing).await?;
        match body.whole(size_max).await {
            Ok(Some(body)) => Ok(Answer { status, body }),
            Ok(None) => Err(Lost::MayBeDone(format!("the answer has more than {size_max} bytes"))),
            Err(error) => Err(Lost::MayBeDone(error.what)),
        }
    }

    fn request(&self, outgoing: Outgoing) -> Result<Request<Full<Bytes>>, Lost> {
        let Outgoing { method, mut target, headers, body } = outgoing;
        let unusable = || Lost::Unsent("the address can't be a request's".to_owned());
        let proxy = self.pool.plain_proxy()?;
        if proxy.is_some() {
            target = format!("http://{}{target}", self.endpoint().authority);
        }
        let has_length = method != Method::GET && method != Method::HEAD;
        let length = HeaderValue::from(body.len());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = target.parse::<Uri>().map_err(|_| unusable())?;
        let out = request.headers_mut();
        out.insert(HOST, self.pool.host.clone().ok_or_else(unusable)?);
        out.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if has_length {
            out.insert(CONTENT_LENGTH, length);
        }
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.clone()) {
            out.insert(PROXY_AUTHORIZATION, authorization);
        }
        out.extend(headers.into_iter().map(|(name, value)| (Some(name), value)));
        Ok(request)
    }
}

/// A header whose value is not printed.
pub(crate) fn hidden(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
