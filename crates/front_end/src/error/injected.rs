//! An answer that is given in the place of the operation's own: by the simulation of limits and faults.
//!
//! What always holds: its code and its message can stand in a header.

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use std::borrow::Cow;

/// Says of an answer that it was simulated, and why.
pub(crate) const X_LARIMAR_SIMULATED: HeaderName = HeaderName::from_static("x-larimar-simulated");

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Injected {
    /// The status.
    pub(crate) status: StatusCode,
    /// The code, which need not be one of the table's.
    pub(crate) code: Cow<'static, str>,
    /// The value of [`X_LARIMAR_SIMULATED`].
    pub(crate) mark: HeaderValue,
    /// Whether nothing is answered: the connection is reset.
    pub(crate) resets: bool,
}
