//! A service that does not serve yet, or not any more: every request gets 503 `ServerBusy` with a text that
//! says so, in the form of the service's errors.
//!
//! Nothing of a request is looked at but what decides the form of the answer: whoever serves checks it. What
//! always holds: an answer says "try again", and the connection is closed behind it, so that the next try may
//! reach another process.

use super::{ConnectionState, LentBody, RequestHandler, ServiceApi, Shared, response};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::reply::body::ResponseBody;
use crate::request::connection_info::ConnectionInfo;
use crate::request::request_id::RequestId;
use base::{BoxFuture, Random};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, Version};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;

/// After how many seconds a client may try again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Says why nothing is served now.
type Reason = Arc<dyn Fn() -> String + Send + Sync>;

/// Answers for a service that does not serve.
pub(crate) struct StandBy<S> {
    shared: Arc<Shared>,
    reason: Reason,
    service: PhantomData<fn() -> S>,
}

impl<S: ServiceApi> StandBy<S> {
    /// For this reason, which may change.
    pub(crate) fn new(shared: Arc<Shared>, reason: Reason) -> Self {
        StandBy { shared, reason, service: PhantomData }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let (parts, body) = request.into_parts();
        let body = pin!(body);
        LentBody::new(body).discard_rest(&parts, &*self.shared.clock).await;
        let request_id = RequestId::new(&*self.shared.random);
        let error = ApiError::with_message(ErrorCode::ServerBusy, (self.reason)());
        let shape = S::guess_shape(&parts.headers);
        let mut reply = shape.reply(&error, request_id.as_str(), self.shared.clock.now());
        if parts.method == Method::HEAD {
            reply.body.clear();
            reply.headers.retain(|(name, _)| name != CONTENT_TYPE);
        }
        let mut response = response::finish::<S>(reply, &parts.headers, &request_id);
        response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
        if parts.version < Version::HTTP_2 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl<S: ServiceApi> RequestHandler for StandBy<S> {
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
        self.shared.connection_state(worker)
    }

    fn answer_request<'a>(
        &'a self,
        _connection: ConnectionInfo,
        request: Request<Incoming>,
        _state: &'a ConnectionState,
    ) -> BoxFuture<'a, Response<ResponseBody>> {
        Box::pin(self.answer(request))
    }
}
