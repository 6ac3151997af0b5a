//! What the judge of bearer tokens decides on, and what it finds.
//!
//! What always holds: a judge sees the token and its use, and nothing else of the request.

use base::Ticks;
use std::fmt;

/// What a token is to be used for.
#[derive(Clone, Copy, Debug)]
pub struct BearerRequest<'a> {
    /// The addressed account.
    pub account: &'a str,
    /// The service's label in host names, such as `table`.
    pub service: &'a str,
    /// The server's time.
    pub now: Ticks,
}

/// Who bears a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Principal {
    /// Their id.
    pub object_id: String,
    /// The directory they are in.
    pub tenant_id: String,
}

/// Why a token is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerError {
    /// It is no token.
    Malformed(&'static str),
    /// It is one, but not for this use, this time or this server.
    Refused(&'static str),
}

/// Judges bearer tokens.
pub trait BearerAuthority: fmt::Debug + Send + Sync {
    /// Returns the bearer of `token`, if it may use the account's service now.
    fn check(&self, token: &str, request: &BearerRequest<'_>) -> Result<Principal, BearerError>;
}
