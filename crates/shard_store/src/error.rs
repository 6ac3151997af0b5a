//! A failure of a place where a map or a copy is kept.

use std::fmt;

/// What failed where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct StoreError {
    /// The place, without secrets.
    pub place: String,
    /// What went wrong, and what helps.
    pub what: String,
    /// Whether the operation may have been done. If not, nothing of it was.
    pub may_be_done: bool,
}

impl StoreError {
    /// A failure of which nothing was done.
    pub fn refused(place: &str, what: impl fmt::Display) -> Self {
        StoreError { place: place.to_owned(), what: what.to_string(), may_be_done: false }
    }

    /// A failure that leaves open whether it was done.
    pub fn uncertain(place: &str, what: impl fmt::Display) -> Self {
        StoreError { place: place.to_owned(), what: what.to_string(), may_be_done: true }
    }
}
