//! Why something of a stamp could not be done.

use crate::stores::store_error::StoreError;
use stamp::{BeginError, DocumentFull, RangeId, SplitRefused, StoredError, SweepRefused};

/// Something of a stamp could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StampError {
    /// A stored thing can't be used: damage, another stamp, a newer format.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// A store failed.
    #[error("{what}: {error}")]
    Store {
        /// What was tried.
        what: String,
        /// Why it failed.
        error: StoreError,
    },
    /// The lease of this process has ended: everything is dropped.
    #[error("the lease of this process has ended")]
    LeaseEnded,
    /// The range is not served by this process, or not any more.
    #[error("range {0} is not served here")]
    NotMine(RangeId),
    /// A change does not fit the document.
    #[error(transparent)]
    Change(#[from] BeginError),
    /// A change would make the document of a range larger than it may be. Nothing was changed.
    #[error("the document of range {0}: {1}")]
    Full(RangeId, DocumentFull),
    /// A range can't be split like this.
    #[error(transparent)]
    Split(#[from] SplitRefused),
    /// A sweep does nothing now.
    #[error(transparent)]
    Sweep(#[from] SweepRefused),
    /// Another process was first with what only one can do: looking again shows what it did.
    #[error("{0}")]
    Raced(String),
    /// The stamp is not there, or the store can't carry one.
    #[error("{0}")]
    Setup(String),
}

impl StampError {
    /// A store failed at this.
    pub(crate) fn store(what: &str, error: StoreError) -> Self {
        StampError::Store { what: what.to_owned(), error }
    }
}

/// A write was not made durable, or it is not known whether it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the append was not acknowledged: {why}")]
pub struct AppendError {
    /// Whether it may be there. If not, it is not and never will be.
    pub may_be_there: bool,
    /// Whether the document has no room for an extent: nothing was sent, and the range goes on.
    pub is_full: bool,
    /// Why.
    pub why: String,
}

impl AppendError {
    /// Nothing was sent.
    pub(crate) fn not_sent(why: impl std::fmt::Display) -> Self {
        AppendError { may_be_there: false, is_full: false, why: why.to_string() }
    }

    /// It may be there.
    pub(crate) fn unknown(why: impl std::fmt::Display) -> Self {
        AppendError { may_be_there: true, is_full: false, why: why.to_string() }
    }
}
