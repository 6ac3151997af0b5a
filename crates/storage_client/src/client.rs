//! One account's client: sends operations, retries them, and turns answers into results.
//!
//! An operation is plain data. Each attempt has a date and a signature of its own; the id
//! `x-ms-client-request-id` is that of the operation, the same in all its attempts.
//!
//! What always holds: an operation ends, because `retry` bounds its attempts and each attempt is bounded in
//! time; answers that are read whole are bounded in size.

use crate::account::connection_string::AccountAddress;
use crate::account::credentials::Credentials;
use crate::account::endpoint::{AccountEndpoint, Service};
use crate::course::{Course, Effect, FailedAttempt};
use crate::error::{Error, ErrorKind, Failure};
use crate::service_error::{ServiceError, read_service_error};
use crate::settings::{ANSWER_SIZE_BYTES_MAX, Settings};
use crate::wire::address_text::encode_query;
use crate::wire::header_text::text;
use crate::wire::shared_key::{Unsigned, X_MS_DATE, X_MS_VERSION, string_to_sign};
use base::guid::guid_text;
use bytes::Bytes;
use http_body_util::Full;
use http_client::AnswerBody;
use http_client::Dialer;
use http_client::Endpoint;
use http_client::Surroundings;
use http_client::{NoAnswer, Pool};
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::{Method, Request, StatusCode, Uri};
use retry::{Location, Outcome};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

/// What this client speaks to tables; all their clients do.
pub(crate) const TABLE_VERSION: &str = "2019-02-02";
/// What it speaks to blobs and queues: large blocks, names in lists encoded; all emulators know it.
const BLOB_QUEUE_VERSION: &str = "2021-12-02";

const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
const REQUEST_ID: &str = "x-ms-request-id";
/// Headers that a request has beside those of its operation, at most.
const OWN_HEADERS_MAX: usize = 8;

/// An operation as it goes on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// For errors: `insert entity`.
    pub(crate) name: &'static str,
    pub(crate) service: Service,
    pub(crate) method: Method,
    /// Below the account, encoded, with a slash before it.
    pub(crate) path: String,
    /// Decoded.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) effect: Effect,
}

impl Operation {
    /// `GET` and `HEAD` change nothing, others are repeatable, unless [`Operation::unrepeatable`] says more.
    pub(crate) fn new(name: &'static str, service: Service, method: Method, path: String) -> Self {
        let (query, headers) = (Vec::new(), HeaderMap::new());
        let changes_nothing = method == Method::GET || method == Method::HEAD;
        let effect = if changes_nothing { Effect::None } else { Effect::Repeatable };
        Operation { name, service, method, path, query, headers, body: Bytes::new(), effect }
    }

    pub(crate) fn query(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    /// A header; the operation is refused if its value can't be one.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self, Error> {
        let value = HeaderValue::from_str(value)
            .map_err(|_| Error::invalid(self.name, format!("the value of {name} can't be a header")))?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// A header that is known to be one.
    pub(crate) fn fixed(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// `x-ms-meta-` headers.
    pub(crate) fn metadata(mut self, metadata: &BTreeMap<String, String>) -> Result<Self, Error> {
        for (name, value) in metadata {
            let header = HeaderName::try_from(format!("x-ms-meta-{name}"))
                .map_err(|_| Error::invalid(self.name, format!("'{name}' can't be a name of metadata")))?;
            let value = HeaderValue::from_str(value).map_err(|_| {
                Error::invalid(self.name, format!("the metadata '{name}' has a value that is no header"))
            })?;
            self.headers.insert(header, value);
        }
        Ok(self)
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Doing it twice has another effect than doing it once, whatever its method.
    pub(crate) fn unrepeatable(mut self) -> Self {
        self.effect = Effect::Unrepeatable;
        self
    }

    fn title(&self) -> String {
        format!("{} {}", self.name, self.path)
    }
}

/// An answer without error.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// How often it was tried.
    pub(crate) attempts: u32,
    /// An earlier attempt may have been done.
    pub(crate) may_be_done: bool,
}

impl Answer {
    /// A header's value; empty without one.
    pub(crate) fn header(&self, name: &str) -> &str {
        text(&self.headers, name)
    }
}

/// An answer whose body is still coming.
pub(crate) struct OpenAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: AnswerBody,
}

/// How an answer is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Whole,
    Open,
}

enum TakenAnswer {
    Whole(Answer),
    Open(OpenAnswer),
}

/// A client of one account.
pub(crate) struct Client {
    pub(crate) account: String,
    pub(crate) credentials: Credentials,
    pub(crate) pools: BTreeMap<Service, (Arc<Pool>, Option<Arc<Pool>>)>,
    /// None if the setting can't be a header.
    pub(crate) user_agent: Option<HeaderValue>,
    pub(crate) surroundings: Surroundings,
    pub(crate) settings: Settings,
}

impl Client {
    pub(crate) fn new(address: AccountAddress, settings: Settings, surroundings: Surroundings) -> Self {
        let connector = surroundings.connector.clone();
        let dialer = Arc::new(Dialer::new(connector, settings.proxies.clone(), settings.tls_roots.clone()));
        let pool =
            |endpoint| Pool::new(endpoint, dialer.clone(), surroundings.clone(), settings.connections());
        let pools = address.endpoints.into_iter();
        let pools =
            pools.map(|(service, (first, second))| (service, (pool(first), second.map(pool)))).collect();
        let user_agent = HeaderValue::from_str(&settings.user_agent).ok();
        let (account, credentials) = (address.name, address.credentials);
        Client { account, credentials, pools, user_agent, surroundings, settings }
    }

    /// The same client with other credentials.
    pub(crate) fn with_credentials(&self, credentials: Credentials) -> Self {
        Client {
            account: self.account.clone(),
            credentials,
            pools: self.pools.clone(),
            user_agent: self.user_agent.clone(),
            surroundings: self.surroundings.clone(),
            settings: self.settings.clone(),
        }
    }

    /// The primary endpoint of a service.
    pub(crate) fn endpoint(&self, service: Service) -> Option<&Endpoint> {
        self.pools.get(&service).map(|(primary, _)| &primary.endpoint)
    }

    /// Sends an operation until it is done or given up, and reads its answer whole.
    pub(crate) async fn send(&self, operation: &Operation) -> Result<Answer, Error> {
        match self.run(operation, Taken::Whole).await? {
            TakenAnswer::Whole(answer) => Ok(answer),
            TakenAnswer::Open(_) => Err(Error::unreadable(operation.name, "its body was not read")),
        }
    }

    /// Sends an operation until an answer without error begins.
    pub(crate) async fn open(&self, operation: &Operation) -> Result<OpenAnswer, Error> {
        match self.run(operation, Taken::Open).await? {
            TakenAnswer::Open(answer) => Ok(answer),
            TakenAnswer::Whole(_) => Err(Error::unreadable(operation.name, "its body was read")),
        }
    }

    async fn run(&self, operation: &Operation, taken: Taken) -> Result<TakenAnswer, Error> {
        let Some((primary, secondary)) = self.pools.get(&operation.service) else {
            let label = operation.service.label();
            return Err(Error::invalid(&operation.title(), format!("the account has no {label} endpoint")));
        };
        let changes_nothing = operation.effect == Effect::None;
        let has_secondary = self.settings.reads_secondary && changes_nothing && secondary.is_some();
        let client_request_id = self.new_id();
        let mut course =
            Course::new(&self.surroundings, &self.settings, operation.name, operation.effect, has_secondary);
        loop {
            let pool = match (course.location(), secondary) {
                (Location::Secondary, Some(secondary)) => secondary,
                _ => primary,
            };
            match self.attempt(pool, operation, &client_request_id, taken).await {
                Ok(TakenAnswer::Whole(answer)) => {
                    let (attempts, may_be_done) = course.done();
                    return Ok(TakenAnswer::Whole(Answer { attempts, may_be_done, ..answer }));
                }
                Ok(open) => {
                    course.done();
                    return Ok(open);
                }
                Err(failed) => course.wait_after(failed, &client_request_id).await?,
            }
        }
    }

    async fn attempt(
        &self,
        pool: &Arc<Pool>,
        operation: &Operation,
        client_request_id: &str,
        taken: Taken,
    ) -> Result<TakenAnswer, FailedAttempt> {
        let no_answer = |error| FailedAttempt::without_answer(error, &operation.title());
        let request = self.request(pool, operation, client_request_id).map_err(no_answer)?;
        let answer_for = self.settings.answer_for(operation.body.len());
        let (response, lease) = pool.exchange(request, answer_for).await.map_err(no_answer)?;
        let (head, incoming) = response.into_parts();
        let clock = self.surroundings.clock.clone();
        let body = AnswerBody::new(incoming, lease, clock, self.settings.part_for);
        let is_success = head.status.is_success();
        if is_success && taken == Taken::Open {
            return Ok(TakenAnswer::Open(OpenAnswer { status: head.status, headers: head.headers, body }));
        }
        let whole = match body.whole(ANSWER_SIZE_BYTES_MAX).await {
            Ok(Some(whole)) => whole,
            Ok(None) => return Err(FailedAttempt::too_long(head.status, &operation.title())),
            Err(error) => {
                return Err(no_answer(NoAnswer {
                    outcome: error.outcome,
                    what: error.what,
                    is_final: false,
                }));
            }
        };
        if is_success {
            let (status, headers) = (head.status, head.headers);
            let answer = Answer { status, headers, body: whole, attempts: 1, may_be_done: false };
            return Ok(TakenAnswer::Whole(answer));
        }
        Err(self.refused(&operation.title(), head.status, &head.headers, &whole))
    }

    /// An answer with an error.
    pub(crate) fn refused(
        &self,
        title: &str,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> FailedAttempt {
        let now = self.now();
        let named = retry::retry_after(|name| headers.get(name).and_then(|value| value.to_str().ok()), now);
        let ServiceError { code, message } = read_service_error(headers, body);
        let outcome = Outcome::Status {
            status: status.as_u16(),
            retry_after: named,
            // Not `ServerBusy`: it also answers a change whose fate the service does not know.
            is_refusal: status == StatusCode::TOO_MANY_REQUESTS,
        };
        let clock_behind_s =
            httpdate::parse_http_date(text(headers, "date")).map_or(0, |theirs| {
                match theirs.duration_since(now) {
                    Ok(behind) => behind.as_secs() as i64,
                    Err(ahead) => -(ahead.duration().as_secs() as i64),
                }
            });
        let failure = Failure {
            status: Some(status),
            code,
            message,
            request_id: text(headers, REQUEST_ID).to_owned(),
            clock_behind_s,
            ..Failure::of(ErrorKind::Service, title)
        };
        FailedAttempt { outcome, failure, is_final: false }
    }

    /// The request of one attempt, with its date and signature.
    fn request(
        &self,
        pool: &Pool,
        operation: &Operation,
        client_request_id: &str,
    ) -> Result<Request<Full<Bytes>>, NoAnswer> {
        let unusable = |what: String| NoAnswer { outcome: Outcome::Unsent, what, is_final: true };
        let no_value = |text: &str| unusable(format!("'{text}' can't be a header's value"));
        let value = |text: &str| HeaderValue::from_str(text).map_err(|_| no_value(text));
        // Without a copy. The text may hold a signature, so an error has the account's name.
        let owned = |text: String| HeaderValue::try_from(text).map_err(|_| no_value(&self.account));
        let prepared = |value: &Option<HeaderValue>, text: &str| value.clone().ok_or_else(|| no_value(text));
        let endpoint = &pool.endpoint;
        let path = format!("{}{}", endpoint.path, operation.path);
        let mut query = encode_query(&operation.query);
        if let Credentials::Sas(parameters) = &self.credentials {
            if !query.is_empty() {
                query.push('&');
            }
            query.push_str(parameters);
        }
        let mut target = if query.is_empty() { path.clone() } else { format!("{path}?{query}") };
        // Those of the operation, and those of each request.
        let mut headers = HeaderMap::with_capacity(operation.headers.len() + OWN_HEADERS_MAX);
        headers.extend(operation.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        let is_table = operation.service == Service::Table;
        let version = if is_table { TABLE_VERSION } else { BLOB_QUEUE_VERSION };
        headers.insert(X_MS_VERSION, HeaderValue::from_static(version));
        headers.insert(X_MS_DATE, owned(httpdate::fmt_http_date(self.now()))?);
        headers.insert(CLIENT_REQUEST_ID, value(client_request_id)?);
        headers.insert(USER_AGENT, prepared(&self.user_agent, &self.settings.user_agent)?);
        if !operation.body.is_empty() || (operation.method != Method::GET && operation.method != Method::HEAD)
        {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(operation.body.len()));
        }
        if let Credentials::Key(key) = &self.credentials {
            let unsigned = Unsigned {
                service: operation.service,
                method: operation.method.as_str(),
                account: &self.account,
                path: &format!("{}{}", endpoint.signed_path(&self.account), operation.path),
                query: &operation.query,
                headers: &headers,
            };
            let signature = key.sign(&string_to_sign(&unsigned));
            headers.insert(AUTHORIZATION, owned(format!("SharedKey {}:{signature}", self.account))?);
        }
        headers.insert(HOST, prepared(&pool.host, &endpoint.authority)?);
        if let Some(proxy) = pool.plain_proxy()? {
            target = format!("http://{}{target}", endpoint.authority);
            if let Some(authorization) = &proxy.authorization {
                headers.insert(PROXY_AUTHORIZATION, authorization.clone());
            }
        }
        let mut request = Request::new(Full::new(operation.body.clone()));
        *request.method_mut() = operation.method.clone();
        *request.uri_mut() =
            Uri::try_from(target).map_err(|error| unusable(format!("the address can't be used: {error}")))?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    pub(crate) fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.surroundings.clock.now().since_unix()
    }

    /// A random id (GUID, version 4).
    pub(crate) fn new_id(&self) -> String {
        guid_text(&self.new_guid())
    }

    pub(crate) fn new_guid(&self) -> [u8; 16] {
        let draw = || self.surroundings.random.next_u64();
        let mut bytes = (u128::from(draw()) << 64 | u128::from(draw())).to_be_bytes();
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        bytes
    }
}
