//! What the operations of one request to the Table service need.
//!
//! What always holds: the request is authenticated, and its operation is authorised.

use crate::auth::grant::Grant;
use crate::pipeline::Environment;
use base::Ticks;
use table::TableService;

/// What the operations of one request need.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    /// The Table service.
    pub(crate) service: &'a TableService,
    /// What the operation uses of the server.
    pub(crate) environment: Environment<'a>,
    /// The account.
    pub(crate) account: &'a str,
    /// The `Host` header.
    pub(crate) host: &'a str,
    /// Scheme, host and, in path style, the account.
    pub(crate) base: &'a str,
    /// What the request may do.
    pub(crate) grant: &'a Grant,
    /// Whether the request is for the read-only secondary.
    pub(crate) secondary: bool,
    /// The request's id.
    pub(crate) request_id: &'a str,
    /// When the request came.
    pub(crate) now: Ticks,
    /// Whether the client wants statistics of its query.
    pub(crate) statistics: bool,
}
