//! Why a decision over a blob's rows ends without a change: a refusal, or rows that it was not shown.

use crate::error::{BlobError, LeaseError};
use base::codec::DecodeError;

/// Why a decision was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was: the answer is no.
    Refused(BlobError),
    /// All rows whose names start so must be seen.
    Need(String),
    /// The content of the base blob must be seen, which is in the head's row.
    NeedContent,
}

impl From<BlobError> for Stop {
    fn from(error: BlobError) -> Self {
        Stop::Refused(error)
    }
}

impl From<DecodeError> for Stop {
    fn from(error: DecodeError) -> Self {
        Stop::Refused(error.into())
    }
}

impl From<LeaseError> for Stop {
    fn from(error: LeaseError) -> Self {
        Stop::Refused(error.into())
    }
}
