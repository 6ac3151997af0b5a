//! Why a store did not do what it was sent, by what the caller does next.

/// A store did not do something, or did not say whether it did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It refused for certain: nothing was done, and trying again does not help.
    #[error("refused: {0}")]
    Refused(String),
    /// It may have been done, and may still be: no answer came, or one that leaves it open.
    #[error("of unknown outcome: {0}")]
    UnknownOutcome(String),
    /// The thing is not there.
    #[error("not there")]
    NotThere,
    /// Nothing was done; the store can't be reached, or is busy. Trying again may help.
    #[error("unavailable: {0}")]
    Unavailable(String),
}
