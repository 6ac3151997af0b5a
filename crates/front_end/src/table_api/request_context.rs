//! What the operations of one request to the Table service need.
//!
//! What always holds: the request is authenticated, and its operation is authorised.

use super::errors::from_filter;
use super::extensions::Extensions;
use crate::auth::grant::Grant;
use crate::error::ApiError;
use crate::pipeline::Environment;
use base::Ticks;
use table::{Filter, TableService};

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
    /// What it wants beyond the protocol.
    pub(crate) extensions: Extensions,
}

impl RequestContext<'_> {
    /// A `$filter` in the grammar that the client wants.
    pub(crate) fn parse_filter(&self, text: &str) -> Result<Filter, ApiError> {
        let parse = if self.extensions.starts_with { Filter::parse_extended } else { Filter::parse };
        parse(text).map_err(from_filter)
    }
}
