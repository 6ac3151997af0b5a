//! Why ranges stop.

/// Why a range is not served any more under its handle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeStop {
    /// The lease has ended.
    #[error("the lease has ended")]
    LeaseEnded,
    /// A log stopped: it must be sealed and read again.
    #[error("a log must be sealed and read again")]
    Reload,
    /// Another has sealed a log.
    #[error("a log was sealed by another")]
    SealedOut,
    /// Another has changed the document.
    #[error("another has the range")]
    Lost,
    /// It was released.
    #[error("the range was released")]
    Released,
    /// It was split.
    #[error("the range was split")]
    Split,
    /// The chain of a log is broken: damage, if the range is still this owner's.
    #[error("{0}")]
    Broken(String),
}
