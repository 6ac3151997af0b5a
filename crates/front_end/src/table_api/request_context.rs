//! What the operations of one request to the Table service need.
//!
//! What always holds: the request is authenticated, and its operation is authorised.

use crate::auth::grant::Grant;
use crate::simulate::SimulatedRequest;
use base::{Clock, Random, Ticks};
use table::TableService;

/// What the operations of one request need.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    /// The Table service.
    pub(crate) service: &'a TableService,
    /// For what a batch does within a time.
    pub(crate) clock: &'a dyn Clock,
    /// For boundaries of batch replies.
    pub(crate) random: &'a dyn Random,
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
    /// Of a server that meets requests with limits and faults on purpose.
    pub(crate) simulated: Option<&'a SimulatedRequest<'a>>,
}
