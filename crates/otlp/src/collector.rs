//! One delivery to the collector: a POST, tried again while the collector is away or busy.
//!
//! What always holds: tries and waits are bounded; a header's value is in no error.

use crate::settings::ExportSettings;
use base::{Clock, Random};
use bytes::Bytes;
use http_body_util::Full;
use http_client::{AnswerBody, ConnectionSettings, Dialer, Endpoint, Pool, Surroundings, TlsRoots, within};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Method, Request, Uri};
use retry::{Attempt, Backoff, Decision, Outcome, Policy};
use std::sync::Arc;
use std::time::Duration;

const AGENT: &str = concat!("larimar-otlp/", env!("CARGO_PKG_VERSION"));
const PROTOBUF: &str = "application/x-protobuf";
/// How long the head of an answer may take, and its body.
const ANSWER_FOR: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read: it says how many spans were refused, and is not looked at.
const ANSWER_SIZE_MAX: usize = 64 << 10;
const CONNECTIONS: ConnectionSettings = ConnectionSettings {
    connections_max: 1,
    idle_for: Duration::from_secs(30),
    connect_for: Duration::from_secs(5),
    permit_for: Duration::from_secs(5),
    part_for: Duration::from_secs(5),
};
/// What the protocol asks to be tried again.
const POLICY: Policy = Policy {
    backoff: Backoff::Doubling {
        first: Duration::from_secs(1),
        max: Duration::from_secs(8),
        percent: (80, 120),
        is_first_at_once: false,
    },
    retries_max: 3,
    statuses: &[429, 502, 503, 504],
    budget: Some(Duration::from_secs(60)),
    // What was taken and whose answer was lost arrives twice.
    retries_not_idempotent: true,
    retry_after_max: Duration::from_secs(30),
};

/// Where deliveries go.
pub(crate) struct Collector {
    pool: Arc<Pool>,
    headers: Vec<(HeaderName, HeaderValue)>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Collector {
    /// No connection yet. An error says what can't be sent.
    pub(crate) fn new(
        settings: &ExportSettings,
        endpoint: Endpoint,
        surroundings: Surroundings,
    ) -> Result<Self, String> {
        let header = |(name, value): &(String, String)| {
            let mut value = HeaderValue::from_str(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name).ok()?, value))
        };
        let headers: Option<Vec<_>> = settings.headers.iter().map(header).collect();
        let headers = headers.ok_or("a header of deliveries can't be one")?;
        let dialer = Dialer::new(surroundings.connector.clone(), settings.proxies.clone(), TlsRoots::System);
        let (clock, random) = (surroundings.clock.clone(), surroundings.random.clone());
        let pool = Pool::new(endpoint, Arc::new(dialer), surroundings, CONNECTIONS);
        Ok(Collector { pool, headers, clock, random })
    }

    /// Where it is, for people.
    pub(crate) fn url(&self) -> String {
        self.pool.endpoint.url()
    }

    /// Delivers a message of a signal, `traces` or `metrics`. An error is of the last try.
    pub(crate) async fn deliver(&self, signal: &str, message: Bytes) -> Result<(), String> {
        let request = retry::Request { is_idempotent: false, has_secondary: false };
        let (mut attempt, began_at) = (Attempt::first(request), self.clock.monotonic());
        loop {
            let (outcome, what) = match self.post(signal, message.clone()).await {
                Ok(()) => return Ok(()),
                Err(failed) => failed,
            };
            let elapsed = self.clock.monotonic().saturating_sub(began_at);
            match POLICY.decide(&attempt, &outcome, elapsed, self.random.next_u64()) {
                Decision::Retry { after, next } => {
                    self.clock.sleep(after).await;
                    attempt = next;
                }
                Decision::GiveUp(reason) => return Err(format!("{what}; {reason}")),
            }
        }
    }

    async fn post(&self, signal: &str, message: Bytes) -> Result<(), (Outcome, String)> {
        let request = self.request(signal, message).map_err(|what| (Outcome::status(400), what))?;
        let answered = self.pool.exchange(request, ANSWER_FOR).await;
        let (response, lease) = answered.map_err(|error| (error.outcome, error.what))?;
        let (head, incoming) = response.into_parts();
        // Read to its end, so that the connection serves again.
        let body = AnswerBody::new(incoming, lease, self.clock.clone(), CONNECTIONS.part_for);
        let _ = within(&*self.clock, ANSWER_FOR, body.whole(ANSWER_SIZE_MAX)).await;
        match head.status.as_u16() {
            200..=299 => Ok(()),
            status => {
                let header = |name: &str| head.headers.get(name)?.to_str().ok();
                let now = std::time::UNIX_EPOCH + self.clock.now().since_unix();
                let retry_after = retry::retry_after(header, now);
                let outcome = Outcome::Status { status, retry_after, is_refusal: status == 429 };
                Err((outcome, format!("it answered {status}")))
            }
        }
    }

    fn request(&self, signal: &str, message: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let unusable = || "its address can't be a request's".to_owned();
        let endpoint = &self.pool.endpoint;
        let mut target = format!("{}/v1/{signal}", endpoint.path);
        let proxy = self.pool.plain_proxy().map_err(|error| error.what)?;
        if proxy.is_some() {
            target = format!("http://{}{target}", endpoint.authority);
        }
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target.parse::<Uri>().map_err(|_| unusable())?;
        let headers = request.headers_mut();
        headers.insert(HOST, self.pool.host.clone().ok_or_else(unusable)?);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.clone()) {
            headers.insert(PROXY_AUTHORIZATION, authorization);
        }
        headers.extend(self.headers.iter().map(|(name, value)| (Some(name.clone()), value.clone())));
        Ok(request)
    }
}
