//! What retries made of operations, for those who count it, such as load tests.
//!
//! What always holds: nothing is called, and nothing is kept, for an operation whose first attempt succeeds.

use crate::error::{Error, ErrorKind, Failure};
use std::fmt;

/// An attempt that failed and was followed by another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedAttempt {
    /// How it failed.
    pub kind: ErrorKind,
    /// The status of its answer, if one came.
    pub status: Option<u16>,
    /// The service's code; empty without one.
    pub code: String,
}

impl RepeatedAttempt {
    /// What is kept of a failure if another attempt follows.
    pub(crate) fn of(failure: Failure) -> Self {
        let status = failure.status.map(|status| status.as_u16());
        RepeatedAttempt { kind: failure.kind, status, code: failure.code }
    }
}

/// Is called once for each operation that needed more than one attempt, when it has ended.
pub trait RetryObserver: fmt::Debug + Send + Sync {
    /// `operation` is a name such as `insert entity`; `repeated` are the attempts that failed, but for the
    /// last one; `end` is what came of that. Of a download `repeated` has the breaks after which it went on.
    fn ended(&self, operation: &'static str, repeated: &[RepeatedAttempt], end: Result<(), &Error>);
}
