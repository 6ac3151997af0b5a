//! What a connection needs of a service: a way to have requests answered, whichever service it is.
//!
//! Behind it the steps are compiled for each service; before it the code of connections is compiled once.
//! What always holds: the answer's future lies where it was made, because it takes kilobytes and is moved
//! more than once else.

use super::{ConnectionInfo, Pipeline, RequestTimer, ServiceApi};
use crate::reply::body::ResponseBody;
use base::{BoxFuture, Random};
use hyper::body::Incoming;
use hyper::{Request, Response};

/// Answers the requests of connections to one service.
pub(crate) trait RequestHandler: Send + Sync + 'static {
    /// The service's label in host names, such as `table`.
    fn label(&self) -> &'static str;

    /// What its connections' tasks are called.
    fn connection_name(&self) -> &'static str;

    /// Whether requests bring metadata in headers, whose names keep their case.
    fn keeps_metadata(&self) -> bool;

    /// For ids of what is answered before there is a request.
    fn random(&self) -> &dyn Random;

    /// Answers one request; `timer` is shared with those before and after it.
    fn answer_request<'a>(
        &'a self,
        connection: ConnectionInfo,
        request: Request<Incoming>,
        timer: &'a RequestTimer,
    ) -> BoxFuture<'a, Response<ResponseBody>>;
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

    fn answer_request<'a>(
        &'a self,
        connection: ConnectionInfo,
        request: Request<Incoming>,
        timer: &'a RequestTimer,
    ) -> BoxFuture<'a, Response<ResponseBody>> {
        let answering = Box::write(Box::new_uninit(), self.handle(connection, request, timer));
        Box::into_pin(answering)
    }
}
