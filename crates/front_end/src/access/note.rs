//! The note of one request, and who takes it.

use super::trace_context::TraceContext;
use base::Ticks;
use std::fmt;
use std::time::Duration;

/// Takes notes of requests. It is called on the workers, so it must not wait for anything.
pub trait AccessLog: fmt::Debug + Send + Sync + 'static {
    /// A request's answer begins.
    fn note(&self, access: &Access<'_>);
}

/// A request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// When it came.
    pub at: Ticks,
    /// Which request it was.
    pub request: AccessedRequest<'a>,
    /// What it was for.
    pub target: AccessTarget<'a>,
    /// What came of it.
    pub outcome: AccessOutcome,
    /// Where the time went.
    pub phases: Phases,
}

/// Names of a request.
#[derive(Clone, Copy, Debug)]
pub struct AccessedRequest<'a> {
    /// The server's name for it (`x-ms-request-id`).
    pub id: &'a str,
    /// The client's (`x-ms-client-request-id`), shortened.
    pub client_id: Option<&'a str>,
    /// The client's program (`User-Agent`), shortened.
    pub agent: Option<&'a str>,
    /// The trace that the client has it in (`traceparent`).
    pub trace: Option<TraceContext>,
}

/// What a request was for.
#[derive(Clone, Copy, Debug)]
pub struct AccessTarget<'a> {
    /// The account; `None`: there is none of the name that was addressed.
    pub account: Option<&'a str>,
    /// `blob`, `queue` or `table`.
    pub service: &'static str,
    /// The operation's name in the protocol's logs, or `unknown`.
    pub operation: &'static str,
    /// Table, queue or blob container; `None`: it is for none.
    pub container: Option<&'a str>,
    /// How much of it the request may touch.
    pub key_class: &'static str,
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub struct AccessOutcome {
    /// The status code.
    pub status: u16,
    /// The error code, if it is an error.
    pub error_code: Option<&'static str>,
    /// Bytes that the request announced for its body.
    pub request_bytes: u64,
    /// Bytes of the answer's body.
    pub response_bytes: u64,
    /// Rows that were read and returned, where that is counted.
    pub rows: Option<AccessedRows>,
}

/// Rows of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessedRows {
    /// Examined.
    pub read: u64,
    /// In the answer.
    pub returned: u64,
}

/// Where the time of a request went: from its head to the beginning of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// All of it.
    pub total: Duration,
    /// Until it was authenticated.
    pub authentication: Duration,
    /// Waits for its account's turn.
    pub turn: Duration,
    /// Waits for its body.
    pub body: Duration,
    /// The operation itself, with its waits for locks, log and disk.
    pub work: Duration,
}
