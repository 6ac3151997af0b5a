//! Why the partition layer could not answer, and by its kind, what the caller does next.

use stream::StreamError;

/// A failure of the partition layer. None of them ever means "no rows".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// The range is being loaded or handed over: try again.
    #[error("range is not served right now: {0}")]
    Unavailable(String),
    /// Too much is waiting: try again later.
    #[error("too many operations are waiting")]
    Busy,
    /// The disk is full: reads go on, writes don't until there is space.
    #[error("the disk is full")]
    DiskFull,
    /// What is stored could not be read or written.
    #[error("storage failed: {0}")]
    Storage(String),
    /// The layer was opened with settings that make no sense.
    #[error("settings: {0}")]
    Settings(String),
    /// An operation broke its contract: a bug in the service that made it. Nothing was changed.
    #[error("operation is not well-formed: {0}")]
    Operation(&'static str),
}

impl From<StreamError> for PartitionError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::DiskFull => PartitionError::DiskFull,
            StreamError::OldEpoch { .. } | StreamError::NotOwner { .. } | StreamError::Closing => {
                PartitionError::Unavailable(error.to_string())
            }
            other => PartitionError::Storage(other.to_string()),
        }
    }
}
