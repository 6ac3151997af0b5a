//! What every request goes through, whichever service it is for: from a request to a response, without
//! sockets.
//!
//! The steps: bound it, find the account, authenticate, let the service find its operation, authorise, read
//! the body and execute, answer. A service is a [`ServiceApi`]; the steps are compiled for each, so that none
//! pays for another's. What always holds: nothing of a body is kept before the request is authenticated,
//! every step is inside the request's time limit, and every failure is one row of the error table. After it
//! the rest of the body is taken in, within bounds of its own.

mod access_note;
mod api_request;
mod authentication;
mod body;
mod connection_state;
pub(crate) mod cors;
mod dates;
mod handler;
mod request;
mod request_metrics;
mod request_timer;
mod response;
mod service_api;
mod shared;
mod stand_by;

use crate::access::{AccessLog, Phase, RequestNotes};
use crate::auth::bearer;
use crate::auth::{SharedKeyRequest, addressed_account};
use crate::bounds::answer_memory::TakenMemory;
use crate::bounds::limits::SMALL_BODY_SIZE_BYTES_MAX;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::error::storage_failure::with_missing_bytes;
use crate::fairness::request_turn::RequestTurn;
use crate::reply::body::ResponseBody;
use crate::reply::compression::compress;
use crate::reply::error_shape::ErrorShape;
use crate::reply::{Reply, ReplyFault};
use crate::request::addressing::Address;
use crate::request::connection_info::ConnectionInfo;
use crate::request::query_string::QueryParameters;
use crate::request::request_id::RequestId;
use crate::simulate::{Requester, SimulatedRequest, Simulation};
use base::{BoxFuture, Metrics, Random, Ticks};
use cors::CorsRules;
use futures_util::future::{Either, select};
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};
use service::CorsRule;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use access_note::tell;
pub(crate) use api_request::{ApiRequest, Environment};
use body::{BodyBounds, LentBody};
pub(crate) use body::{IncomingBody, RequestBody, WholeBody};
pub(crate) use connection_state::ConnectionState;
pub(crate) use handler::RequestHandler;
pub(crate) use request::{check_timeout, time_limit as requested_time_limit, timeout_of, within};
use request_metrics::{Answered, RequestMetrics};
pub(crate) use request_timer::RequestTimer;
pub(crate) use service_api::ServiceApi;
pub(crate) use shared::Shared;
pub(crate) use stand_by::StandBy;

/// An answer for which there is no memory now.
struct ReplyRefused;

/// A service behind the steps that all requests go through.
pub(crate) struct Pipeline<S> {
    shared: Arc<Shared>,
    service: S,
    cors: CorsRules,
    /// With it requests meet limits and faults on purpose.
    simulation: Option<Arc<Simulation>>,
    metrics: RequestMetrics,
    /// Who takes notes of each request.
    access: Option<Arc<dyn AccessLog>>,
}

impl<S: ServiceApi> Pipeline<S> {
    /// For this service; what is shared is shared with the other services, and so is a simulation.
    pub(crate) fn new(
        shared: Arc<Shared>,
        service: S,
        simulation: Option<Arc<Simulation>>,
        metrics: &Metrics,
        access: Option<Arc<dyn AccessLog>>,
    ) -> Self {
        let metrics = RequestMetrics::new(metrics, S::LABEL);
        Pipeline { shared, service, cors: CorsRules::default(), simulation, metrics, access }
    }

    /// For a connection that is served by this worker.
    pub(crate) fn connection_state(&self, worker: usize) -> ConnectionState {
        self.shared.connection_state(worker)
    }

    /// Answers one request; `state` is shared with those before and after it.
    pub(crate) async fn handle<B: RequestBody>(
        &self,
        connection: ConnectionInfo,
        request: Request<B>,
        state: &ConnectionState,
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
        let _under_way = self.metrics.under_way.hold();
        let operation = RequestNotes::new(self.access.is_some());
        let request_bytes = request::announced_body_size(&parts, &body).unwrap_or(0);
        // Known once the operation is; until then the headers decide the form of errors.
        let mut shape = None;
        let result = match shared.requests.admit() {
            None => Err(ErrorCode::ServerBusy.into()),
            Some(_permit) => {
                let target = (&parts, host, address);
                let from = (connection, state, &operation);
                let work = pin!(self.answer(from, target, &mut body, request_id.as_str(), now, &mut shape));
                self.within_time_limit(&parts, work, &state.timer).await
            }
        };
        // Also of a body that an operation does not use: the connection's next request starts behind it.
        body.discard_rest(&parts, &*shared.clock).await;
        let mut error_code = result.as_ref().err().map(|error| error.code.as_str());
        let failure = |error| self.error_reply(error, &parts, shape, request_id.as_str(), now);
        let mut reply = result.unwrap_or_else(failure);
        if S::COMPRESSES {
            reply = compress(reply, &parts.headers);
        }
        let memory = self.admit_reply(connection, &address, &parts, reply.body.len());
        if memory.is_err() {
            error_code = Some(ErrorCode::ServerBusy.as_str());
            reply = failure(ErrorCode::ServerBusy.into());
        }
        if let (Some(stream), Some(account)) = (reply.stream.take(), shared.accounts.find(address.account)) {
            reply.stream = Some(stream.in_turns(state.turns.clone(), account.number()));
        }
        reply = self.bound_stream(reply, &parts, begun_at);
        if let Some(ReplyFault::CutBody(size)) = reply.fault {
            reply = reply.cut_after(size);
        }
        let mut response = response::finish::<S>(reply, &parts.headers, &request_id);
        if let Some(date) = shared.dates.date_if_set_back(now) {
            response.headers_mut().insert(DATE, date);
        }
        let is_last = !body.is_end_stream() || state.is_too_many(&shared.account_bounds);
        if parts.version < Version::HTTP_2 && is_last {
            // The rest of the body is in the way of a next request, or other accounts want connections, too:
            // the connection is closed behind the answer.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Ok(Some(memory)) = memory {
            response = response.map(|body| body.with_memory(memory));
        }
        if response.status() == StatusCode::UNAUTHORIZED && shared.bearer.is_some() {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(bearer::CHALLENGE));
        }
        self.add_cors(&parts, &address, now, response.headers_mut()).await;
        let answered = Answered {
            operation: operation.name(),
            status: response.status(),
            error_code,
            took_for: shared.clock.monotonic().saturating_sub(begun_at),
            request_bytes,
            response_bytes: response.body().size_hint().exact().unwrap_or(0),
        };
        self.metrics.note(&answered);
        if let Some(access) = &self.access {
            tell::<S>(&**access, (now, &request_id, &parts, &address), shared, &operation, &answered);
        }
        response
    }

    /// Runs `work` within the request's time limit.
    async fn within_time_limit(
        &self,
        parts: &Parts,
        mut work: Pin<&mut impl Future<Output = Result<Reply, ApiError>>>,
        timer: &RequestTimer,
    ) -> Result<Reply, ApiError> {
        // Most reads never wait: the timer is made with the first wait.
        match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
            Poll::Ready(result) => result,
            Poll::Pending => {
                let limit = S::time_limit(parts, self.shared.limits.request_for_max);
                match select(work, pin!(timer.sleep(&*self.shared.clock, limit))).await {
                    Either::Left((result, _)) => result,
                    Either::Right(_) => Err(ErrorCode::OperationTimedOut.into()),
                }
            }
        }
    }

    /// The reply to a request that failed, in the operation's form if that is known.
    fn error_reply(
        &self,
        error: ApiError,
        parts: &Parts,
        shape: Option<ErrorShape>,
        request_id: &str,
        now: Ticks,
    ) -> Reply {
        let error = with_missing_bytes(error, || self.service.missing_space_bytes());
        tracing::debug!(
            request_id,
            code = error.code.as_str(),
            detail = error.detail(),
            "{} {} failed",
            parts.method,
            parts.uri.path(),
        );
        let shape = shape.unwrap_or_else(|| S::guess_shape(&parts.headers));
        let mut reply = shape.reply(&error, request_id, now);
        if parts.method == Method::HEAD {
            // These headers describe a body, and there is none.
            reply.body.clear();
            reply.headers.retain(|(name, _)| name != CONTENT_TYPE);
        }
        reply
    }

    /// Memory for a large answer, none for a small one. The answer to a write is always admitted, because the
    /// client has to learn that something has changed.
    fn admit_reply(
        &self,
        connection: ConnectionInfo,
        address: &Address<'_>,
        parts: &Parts,
        size_bytes: usize,
    ) -> Result<Option<TakenMemory>, ReplyRefused> {
        if size_bytes <= SMALL_BODY_SIZE_BYTES_MAX {
            return Ok(None);
        }
        let Shared { large_answers, accounts, account_bounds, .. } = &*self.shared;
        if !S::only_reads(parts) {
            return Ok(Some(large_answers.take_anyway(size_bytes)));
        }
        let of_account = match accounts.find(address.account) {
            Some(account) => {
                Some(account_bounds.admit_answer(account.number(), size_bytes).ok_or(ReplyRefused)?)
            }
            None => None,
        };
        let memory = large_answers.take(connection.peer, size_bytes).ok_or(ReplyRefused)?;
        Ok(Some(memory.of_account(of_account)))
    }

    /// Ends a streamed body at the time-out that the request names, if it names one.
    fn bound_stream(&self, mut reply: Reply, parts: &Parts, begun_at: Duration) -> Reply {
        if let Some(stream) = reply.stream.take() {
            reply.stream = Some(match request::requested_timeout(parts) {
                None => stream,
                Some(timeout) => {
                    let left = (begun_at + timeout).saturating_sub(self.shared.clock.monotonic());
                    stream.until(self.shared.clock.sleep(left))
                }
            });
        }
        reply
    }

    async fn answer<B: RequestBody>(
        &self,
        (connection, state, operation): (ConnectionInfo, &ConnectionState, &RequestNotes),
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
            // No operation is known yet, so the error has no operation's form.
            *shape = Some(ErrorShape::Xml);
            let account = addressed_account(&shared.accounts, &address)
                .map_err(|_| ApiError::new(ErrorCode::CorsPreflightFailure))?;
            let rules = self.cors_rules(account.name(), now).await;
            return cors::preflight(rules.as_deref().unwrap_or_default(), &parts.headers);
        }
        let account = addressed_account(&shared.accounts, &address).inspect_err(|_| {
            *shape = Some(ErrorShape::Xml);
        })?;
        let signed = SharedKeyRequest {
            service: S::SIGNED,
            address: &address,
            method: parts.method.as_str(),
            query: &query,
            headers: &parts.headers,
        };
        let (grant, principal) = self.grant_of(connection, &signed, account, now, operation).await?;
        let clock = &*shared.clock;
        request::check_timeout(&query)?;
        let number = account.number();
        let busy = || ApiError::new(ErrorCode::ServerBusy);
        let _permit = shared.account_bounds.admit(number).ok_or_else(busy)?;
        if parts.version < Version::HTTP_2 {
            state.note_account(&shared.account_bounds, number);
        }
        // Boxed: it is for tests of clients, and the future of every request would be larger by it.
        let simulated = self.simulation.as_deref().map(|simulation| {
            let requester = Requester { account: account.name(), account_number: number, service: S::LABEL };
            let size = request::announced_body_size(parts, &body).unwrap_or(0);
            Box::new(SimulatedRequest::new(simulation, &*shared.clock, requester, size))
        });
        let request = ApiRequest {
            connection,
            parts,
            host,
            address,
            account: account.name(),
            keys: account,
            query: &query,
            grant: &grant,
            principal: principal.as_ref(),
            request_id,
            now,
            environment: Environment {
                accounts: &shared.accounts,
                bearer: shared.bearer.as_deref(),
                clock: &*shared.clock,
                random: &*shared.random,
                cors: &self.cors,
                operation,
                simulated: simulated.as_deref(),
            },
        };
        let turn = RequestTurn::new(&state.turns, number);
        let bounds = BodyBounds {
            limits: &shared.limits,
            large_bodies: &shared.large_bodies,
            accounts: &shared.account_bounds,
            account: number,
            turn: &turn,
            timing: (operation, clock),
        };
        let begun = operation.begin(clock);
        let answering = turn.measured(async {
            // With a body the work begins when that has come.
            if body.is_end_stream() {
                let waiting = operation.begin(clock);
                turn.wait().await;
                operation.end(Phase::Turn, waiting, clock);
            }
            let body = IncomingBody::new(body, parts, bounds);
            self.service.answer(&request, body, shape).await
        });
        let result = answering.await;
        operation.end(Phase::Answer, begun, clock);
        match simulated {
            None => result,
            Some(simulated) => simulated.finish(result),
        }
    }

    /// The account's rules of cross-origin requests, if it has any. Should they not be readable, there are
    /// none: the request itself has its own answer.
    async fn cors_rules(&self, account: &str, now: Ticks) -> Option<Arc<[CorsRule]>> {
        if let Some(rules) = self.cors.kept(account, now) {
            return rules;
        }
        // Boxed, as it runs once in half a minute and would enlarge every request's future.
        let properties = Box::pin(self.service.properties(account)).await.ok()?;
        self.cors.keep(account, properties.cors, now)
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
            let rules = self.cors_rules(account.name(), now).await;
            if let Some(rules) = rules {
                cors::add_headers(&rules, parts.method.as_str(), &parts.headers, response, S::SHARES_UNASKED);
            }
        }
    }
}

impl<S: ServiceApi> RequestHandler for Pipeline<S> {
    fn label(&self) -> &'static str {
        S::LABEL
    }

    fn connection_name(&self) -> &'static str {
        S::CONNECTION_NAME
    }

    fn keeps_metadata(&self) -> bool {
        S::KEEPS_METADATA
    }

    fn random(&self) -> &dyn Random {
        &*self.shared.random
    }

    fn connection_state(&self, worker: usize) -> ConnectionState {
        Pipeline::connection_state(self, worker)
    }

    fn answer_request<'a>(
        &'a self,
        connection: ConnectionInfo,
        request: Request<Incoming>,
        state: &'a ConnectionState,
    ) -> BoxFuture<'a, Response<ResponseBody>> {
        // Written where it stays: the future takes kilobytes, and else is moved more than once.
        let answering = Box::write(Box::new_uninit(), self.handle(connection, request, state));
        Box::into_pin(answering)
    }
}
