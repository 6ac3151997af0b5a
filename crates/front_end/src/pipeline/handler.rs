//! What a connection needs of a service: a way to have requests answered, whichever service it is.
//!
//! Behind it the steps are compiled for each service; before it the code of connections is compiled once.

use super::ConnectionState;
use crate::reply::body::ResponseBody;
use crate::request::connection_info::ConnectionInfo;
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

    /// For a connection that is served by this worker.
    fn connection_state(&self, worker: usize) -> ConnectionState;

    /// Answers one request; `state` is shared with those before and after it.
    fn answer_request<'a>(
        &'a self,
        connection: ConnectionInfo,
        request: Request<Incoming>,
        state: &'a ConnectionState,
    ) -> BoxFuture<'a, Response<ResponseBody>>;
}
