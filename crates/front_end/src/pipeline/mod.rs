//! What every request goes through, whichever service it is for: from a request to a response, without sockets.
//!
//! The steps: bound it, find the account, authenticate, let the service find its operation, authorise, read the body and
//! execute, answer. A service is a [`ServiceApi`]; the steps are compiled for each, so that none pays for another's.
//! What always holds: nothing of a body is kept before the request is authenticated, every step is inside the request's
//! time limit, and every failure is one row of the error table. After it the rest of the body is taken in, within bounds
//! of its own.

mod body;
pub(crate) mod cors;
mod dates;
mod handler;
pub(crate) mod policies;
mod request;
mod request_timer;
mod response;
pub(crate) mod service_settings;
mod shared;
mod storage_failure;
pub(crate) mod user_delegation_key;

use crate::accounts::{Account, Accounts};
use crate::auth::bearer::{self, BearerAuthority, BearerRequest, Principal, verify_bearer};
use crate::auth::delegation::BoundRequest;
use crate::auth::grant::Grant;
use crate::auth::sas::SasToken;
use crate::auth::shared_key::SignedService;
use crate::auth::{
    Credentials, SasRequest, SharedKeyRequest, SignedResource, addressed_account, credentials, verify_sas_of,
    verify_shared_key,
};
use crate::bounds::limits::SMALL_BODY_SIZE_BYTES_MAX;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::reply::Reply;
use crate::reply::body::ResponseBody;
use crate::reply::compression::compress;
use crate::request::addressing::{Address, AddressStyle};
use crate::request::query_string::QueryParameters;
use crate::request::request_id::RequestId;
use base::{Clock, Random, Ticks};
use cors::CorsRules;
use futures_util::future::{Either, select};
use hyper::body::Body;
use hyper::header::{CONNECTION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};
use service::{ServiceProperties, ServicePropertiesUpdate, StoredPolicy};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use body::LentBody;
pub(crate) use body::{IncomingBody, RequestBody, WholeBody};
pub(crate) use handler::RequestHandler;
pub(crate) use request::{check_timeout, time_limit as asked_time_limit, timeout_of, within};
pub(crate) use request_timer::RequestTimer;
pub(crate) use response::{ErrorShape, is_version};
pub(crate) use shared::Shared;
pub(crate) use storage_failure::from_partition;

/// What is known of the connection that a request came on.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionInfo {
    /// The client's address.
    pub peer: Option<IpAddr>,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
}

/// One service's side of HTTP: what it does with a request that is authenticated.
pub(crate) trait ServiceApi: Send + Sync + 'static {
    /// The service's label in host names, such as `table`.
    const LABEL: &'static str;
    /// What its connections' tasks are called.
    const CONNECTION_NAME: &'static str;
    /// Whose rules of signing apply.
    const SIGNED: SignedService;
    /// The `Server` header.
    const SERVER: &'static str;
    /// The version of requests that name none.
    const DEFAULT_VERSION: &'static str;
    /// Letters that a stored access policy may hold.
    const POLICY_PERMISSIONS: &'static str;
    /// Whether logs may be of version 2.0.
    const LOGS_IN_VERSION_2: bool = true;
    /// Whether large answers are compressed for clients that ask.
    const COMPRESSES: bool;
    /// Whether requests bring metadata in headers.
    const KEEPS_METADATA: bool;

    /// Adds the headers that all answers of the service have, besides those that all services' have.
    fn put_headers(headers: &mut HeaderMap);

    /// Whether a request without credentials may be somebody who reads what is public.
    const TAKES_ANONYMOUS: bool = false;

    /// Whether reads that name no origin are told if any origin may have them.
    const SHARES_UNASKED: bool = true;

    /// From this version on a request without credentials is told what one with a bad token is told; `None`: never.
    const ANONYMOUS_AS_BAD_TOKEN_SINCE: Option<&'static str> = None;

    /// Whether a request for certain only reads, so that its answer may be withheld.
    fn only_reads(parts: &Parts) -> bool {
        parts.method == Method::GET
    }

    /// How long a request may take; `longest` is the server's bound for ordinary ones.
    fn time_limit(parts: &Parts, longest: Duration) -> Duration {
        request::time_limit(parts, longest)
    }

    /// How errors are told before the operation is known.
    fn guess_shape(headers: &HeaderMap) -> ErrorShape;

    /// What a service signature on this request signs.
    fn signed_resource<'a>(address: &Address<'a>, query: &'a QueryParameters<'_>) -> SignedResource<'a>;

    /// Answers an authenticated request. `shape` is set once the operation tells how errors are told.
    fn answer<B: RequestBody>(
        &self,
        request: &ApiRequest<'_>,
        body: IncomingBody<'_, B>,
        shape: &mut Option<ErrorShape>,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send;

    /// The stored access policies of a container.
    fn policies(
        &self,
        account: &str,
        container: &str,
    ) -> impl Future<Output = Result<Vec<StoredPolicy>, ApiError>> + Send;

    /// Replaces the stored access policies of a container.
    fn set_policies(
        &self,
        account: &str,
        container: &str,
        policies: Vec<StoredPolicy>,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Bytes that have to become free before writes are taken again; 0: they are.
    fn missing_space_bytes(&self) -> u64;

    /// The service's settings.
    fn properties(&self, account: &str) -> impl Future<Output = Result<ServiceProperties, ApiError>> + Send;

    /// Changes the roots that are given.
    fn set_properties(
        &self,
        account: &str,
        update: ServicePropertiesUpdate,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// An authenticated request, all but its body.
#[derive(Clone, Copy)]
pub(crate) struct ApiRequest<'a> {
    /// What is known of its connection.
    pub(crate) connection: ConnectionInfo,
    /// Verb, address and headers as sent.
    pub(crate) parts: &'a Parts,
    /// The host that was asked for.
    pub(crate) host: &'a str,
    /// Account and resource.
    pub(crate) address: Address<'a>,
    /// The account's name.
    pub(crate) account: &'a str,
    /// The account, for requests inside this one.
    pub(crate) keys: &'a Account,
    /// All accounts, for sources of copies.
    pub(crate) accounts: &'a Accounts,
    /// Who judges tokens, for sources of copies.
    pub(crate) bearer: Option<&'a dyn BearerAuthority>,
    /// The decoded parameters.
    pub(crate) query: &'a QueryParameters<'a>,
    /// What the request may do.
    pub(crate) grant: &'a Grant,
    /// Who sends it, if they bear a token.
    pub(crate) principal: Option<&'a Principal>,
    /// The request's id.
    pub(crate) request_id: &'a str,
    /// When the request came.
    pub(crate) now: Ticks,
    /// For what is done within a time.
    pub(crate) clock: &'a dyn Clock,
    /// For ids in answers.
    pub(crate) random: &'a dyn Random,
    /// To be told when rules have changed.
    pub(crate) cors: &'a CorsRules,
}

impl ApiRequest<'_> {
    /// The headers as sent.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Scheme, host and, in path style, the account.
    pub(crate) fn base_address(&self) -> String {
        base_address(self.connection, self.host, &self.address)
    }

    /// Refuses what changes something at the read-only secondary.
    pub(crate) fn check_secondary(&self, is_read: bool) -> Result<(), ApiError> {
        if self.address.secondary && !is_read {
            return Err(ApiError::write_at_secondary());
        }
        Ok(())
    }

    /// What a list is asked to `include`, which must be known. One that is not is refused as recorded.
    pub(crate) fn includes(&self, known: &[&str]) -> Result<Vec<&str>, ApiError> {
        const NAME: &str = "include";
        let is_known = |part: &str| known.iter().any(|known| part.eq_ignore_ascii_case(known));
        let includes: Vec<&str> = self.query.list(NAME).collect();
        match includes.iter().find(|part| !is_known(part)) {
            None => Ok(includes),
            Some(part) => Err(ApiError::invalid_parameter(NAME, part, "Invalid query parameter value.")),
        }
    }

    /// The raw path below the account. One client asks the secondary for the service as
    /// `/ACCOUNT-secondary/ACCOUNT?restype=service`.
    pub(crate) fn resource(&self) -> &str {
        let address = &self.address;
        let is_doubled = address.secondary
            && address.resource.strip_prefix('/') == Some(address.account)
            && self.query.find("restype").is_some();
        if is_doubled { "" } else { address.resource }
    }
}

/// A service behind the steps that all requests go through.
pub(crate) struct Pipeline<S> {
    shared: Arc<Shared>,
    service: S,
    cors: CorsRules,
}

impl<S: ServiceApi> Pipeline<S> {
    /// For this service; what is shared is shared with the other services.
    pub(crate) fn new(shared: Arc<Shared>, service: S) -> Self {
        Pipeline { shared, service, cors: CorsRules::default() }
    }

    /// Answers one request; `timer` is shared with those before and after it.
    pub(crate) async fn handle<B: RequestBody>(
        &self,
        connection: ConnectionInfo,
        request: Request<B>,
        timer: &RequestTimer,
    ) -> Response<ResponseBody> {
        let shared = &*self.shared;
        let (parts, body) = request.into_parts();
        let body = pin!(body);
        let mut body = LentBody::new(body);
        let host = request::host(&parts);
        let host = host.as_deref();
        let address = Address::parse(host.unwrap_or_default(), parts.uri.path(), S::LABEL);
        let now = shared.clock.now();
        let begun_at = shared.clock.monotonic();
        let request_id = RequestId::new(&*shared.random);
        // Known once the operation is; until then the headers are asked, if there is an error to tell.
        let mut shape = None;
        let result = match shared.requests.admit() {
            None => Err(ErrorCode::ServerBusy.into()),
            Some(_permit) => {
                let mut work = pin!(self.answer(
                    connection,
                    (&parts, host, address),
                    &mut body,
                    request_id.as_str(),
                    now,
                    &mut shape
                ));
                // Most reads never wait: the timer is made with the first wait.
                match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
                    Poll::Ready(result) => result,
                    Poll::Pending => {
                        let limit = S::time_limit(&parts, shared.limits.request_for_max);
                        match select(work, pin!(timer.sleep(&*shared.clock, limit))).await {
                            Either::Left((result, _)) => result,
                            Either::Right(_) => Err(ErrorCode::OperationTimedOut.into()),
                        }
                    }
                }
            }
        };
        // Also of a body that an operation has no use for: a connection is good for the next request only behind it.
        body.discard_rest(&parts, &*shared.clock).await;
        let tell = |error: ApiError| {
            let error = storage_failure::with_missing_bytes(error, || self.service.missing_space_bytes());
            tracing::debug!(
                request_id = request_id.as_str(),
                code = error.code.as_str(),
                detail = error.detail(),
                "{} {} failed",
                parts.method,
                parts.uri.path(),
            );
            let shape = shape.unwrap_or_else(|| S::guess_shape(&parts.headers));
            let mut reply = shape.reply(&error, request_id.as_str(), now);
            if parts.method == Method::HEAD {
                // There is no body that these could tell of.
                reply.body.clear();
                reply.headers.retain(|(name, _)| name != CONTENT_TYPE);
            }
            reply
        };
        let mut reply = result.unwrap_or_else(tell);
        if S::COMPRESSES {
            reply = compress(reply, &parts.headers);
        }
        let size = reply.body.len();
        let mut room = None;
        if size > SMALL_BODY_SIZE_BYTES_MAX {
            // Who has changed something has to learn of it.
            room = if S::only_reads(&parts) {
                shared.large_answers.take(connection.peer, size)
            } else {
                Some(shared.large_answers.take_anyway(size))
            };
            if room.is_none() {
                reply = tell(ErrorCode::ServerBusy.into());
            }
        }
        if let Some(stream) = reply.stream.take() {
            reply.stream = Some(match request::asked_timeout(&parts) {
                None => stream,
                Some(asked) => {
                    let left = (begun_at + asked).saturating_sub(shared.clock.monotonic());
                    stream.until(shared.clock.sleep(left))
                }
            });
        }
        let mut response = response::finish::<S>(reply, &parts.headers, &request_id);
        if let Some(date) = shared.dates.date_if_set_back(now) {
            response.headers_mut().insert(DATE, date);
        }
        if parts.version < Version::HTTP_2 && !body.is_end_stream() {
            // The connection is closed behind the answer, as the rest of the body is in the way: that is said.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(room) = room {
            response = response.map(|body| body.with_memory(room));
        }
        if response.status() == StatusCode::UNAUTHORIZED && shared.bearer.is_some() {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(bearer::CHALLENGE));
        }
        self.add_cors(&parts, &address, now, response.headers_mut()).await;
        response
    }

    async fn answer<B: RequestBody>(
        &self,
        connection: ConnectionInfo,
        (parts, host, address): (&Parts, Option<&str>, Address<'_>),
        body: B,
        request_id: &str,
        now: Ticks,
        shape: &mut Option<ErrorShape>,
    ) -> Result<Reply, ApiError> {
        let shared = &*self.shared;
        let host = host.ok_or_else(|| ApiError::new(ErrorCode::HostInformationNotPresent))?;
        request::check_length(parts, &body)?;
        shared.versions.check(&parts.headers)?;
        let query =
            QueryParameters::parse(parts.uri.query()).map_err(|_| ApiError::new(ErrorCode::InvalidUri))?;
        if parts.method == Method::OPTIONS {
            // Told before any operation is known, so in no operation's form.
            *shape = Some(ErrorShape::Xml);
            let account = addressed_account(&shared.accounts, &address)
                .map_err(|_| ApiError::new(ErrorCode::CorsPreflightFailure))?;
            let rules = self.cors.of(account.name(), &self.service, now).await;
            return cors::preflight(rules.as_deref().unwrap_or_default(), &parts.headers);
        }
        let account = addressed_account(&shared.accounts, &address).inspect_err(|_| {
            *shape = Some(ErrorShape::Xml);
        })?;
        let found = match credentials(&parts.headers, &query) {
            Err(error) if S::TAKES_ANONYMOUS && error.code == ErrorCode::NoAuthenticationInformation => None,
            Err(error) if error.code == ErrorCode::NoAuthenticationInformation => {
                let version = parts.headers.get("x-ms-version").map(|version| version.as_bytes());
                let is_told = S::ANONYMOUS_AS_BAD_TOKEN_SINCE
                    .is_some_and(|since| version.is_some_and(|version| version >= since.as_bytes()));
                return Err(if is_told { ErrorCode::InvalidToken.into() } else { error });
            }
            other => Some(other?),
        };
        let signed = SharedKeyRequest {
            service: S::SIGNED,
            address: &address,
            method: parts.method.as_str(),
            query: &query,
            headers: &parts.headers,
        };
        let (grant, principal) = match found {
            None => (Grant::Anonymous, None),
            Some(found) => self.authenticate(connection, &signed, account, found, now).await?,
        };
        request::check_timeout(&query)?;
        let request = ApiRequest {
            connection,
            parts,
            host,
            address,
            account: account.name(),
            keys: account,
            accounts: &shared.accounts,
            bearer: shared.bearer.as_deref(),
            query: &query,
            grant: &grant,
            principal: principal.as_ref(),
            request_id,
            now,
            clock: &*shared.clock,
            random: &*shared.random,
            cors: &self.cors,
        };
        let body = IncomingBody::new(body, parts, &shared.limits, &shared.large_bodies);
        self.service.answer(&request, body, shape).await
    }

    async fn authenticate(
        &self,
        connection: ConnectionInfo,
        signed: &SharedKeyRequest<'_>,
        account: &Account,
        credentials: Credentials<'_>,
        now: Ticks,
    ) -> Result<(Grant, Option<Principal>), ApiError> {
        match credentials {
            Credentials::SharedKey { scheme, account: claimed_account, signature } => {
                verify_shared_key(account, signed, scheme, claimed_account, signature, now)?;
                Ok((Grant::Everything, None))
            }
            Credentials::Bearer(token) => {
                let request = BearerRequest { account: account.name(), service: S::LABEL, now };
                let version = signed.headers.get("x-ms-version").map(|version| version.as_bytes());
                let authority = self.shared.bearer.as_deref();
                let principal = verify_bearer(authority, token, connection.encrypted, version, &request)?;
                // A signature for one user only comes with their token, and says what they may do.
                let grant = match SasToken::find(signed.query).filter(|token| token.field("sduoid").is_some())
                {
                    // There are no roles yet: a token that is good for the account may do everything.
                    None => Grant::Everything,
                    Some(token) => {
                        self.verify_sas(connection, signed, account, token, Some(&principal), now).await?
                    }
                };
                Ok((grant, Some(principal)))
            }
            Credentials::Sas(token) => {
                Ok((self.verify_sas(connection, signed, account, token, None, now).await?, None))
            }
        }
    }

    async fn verify_sas(
        &self,
        connection: ConnectionInfo,
        signed: &SharedKeyRequest<'_>,
        account: &Account,
        token: SasToken<'_>,
        principal: Option<&Principal>,
        now: Ticks,
    ) -> Result<Grant, ApiError> {
        let request = SasRequest {
            token,
            resource: S::signed_resource(signed.address, signed.query),
            bound: BoundRequest { headers: signed.headers, query: signed.query },
            peer: connection.peer,
            encrypted: connection.encrypted,
            now,
        };
        let policies = match request.policy_id() {
            None => Vec::new(),
            // In a box: else each request would have room for it.
            Some(_) => {
                match Box::pin(self.service.policies(account.name(), &request.resource.container)).await {
                    Ok(policies) => policies,
                    Err(error) if error.code.status().is_server_error() => return Err(error),
                    // No container, no policy: the verification says so, once it has seen the signature.
                    Err(_) => Vec::new(),
                }
            }
        };
        verify_sas_of(account, &request, &policies, principal)
    }

    async fn add_cors(&self, parts: &Parts, address: &Address<'_>, now: Ticks, response: &mut HeaderMap) {
        if parts.method == Method::OPTIONS {
            return;
        }
        let crosses = parts.headers.contains_key(hyper::header::ORIGIN);
        if !crosses && parts.method != Method::GET && parts.method != Method::HEAD {
            return;
        }
        if let Some(account) = self.shared.accounts.find(address.account) {
            let rules = self.cors.of(account.name(), &self.service, now).await;
            if let Some(rules) = rules {
                cors::add_headers(&rules, parts.method.as_str(), &parts.headers, response, S::SHARES_UNASKED);
            }
        }
    }
}

fn base_address(connection: ConnectionInfo, host: &str, address: &Address<'_>) -> String {
    let scheme = if connection.encrypted { "https://" } else { "http://" };
    let mut base = String::with_capacity(scheme.len() + host.len() + address.account.len() + 1);
    base.push_str(scheme);
    base.push_str(host);
    if address.style == AddressStyle::Path {
        base.push('/');
        base.push_str(address.account);
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_addresses_of_both_styles() {
        let base = |encrypted, host: &str, path: &str| {
            let connection = ConnectionInfo { peer: None, encrypted };
            base_address(connection, host, &Address::parse(host, path, "table"))
        };
        assert_eq!(base(false, "127.0.0.1:1", "/acct/T"), "http://127.0.0.1:1/acct");
        assert_eq!(base(true, "acct.table.example.org", "/T"), "https://acct.table.example.org");
    }
}
