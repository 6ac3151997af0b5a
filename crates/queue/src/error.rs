//! Errors of the Queue service: one kind for each error code a client can get.

use base::codec::DecodeError;
use partition::PartitionError;
use service::{NameError, PolicyError, ServicePropertiesError};

/// Why an operation of the Queue service was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueueError {
    /// There is no queue of that name.
    #[error("the queue does not exist")]
    QueueNotFound,
    /// There is a queue of that name with other metadata.
    #[error("the queue exists already with other metadata")]
    QueueAlreadyExists,
    /// A name that no queue can have.
    #[error("the queue's name: {0}")]
    QueueName(#[from] NameError),
    /// Metadata that is too large.
    #[error("the metadata is too large")]
    MetadataTooLarge,
    /// The message was deleted, has expired or never existed, or the receipt is not its last one.
    #[error("the message does not exist")]
    MessageNotFound,
    /// An update would hide the message until after it expires.
    #[error("the message would be visible only after it expires")]
    VisibleAfterExpiry,
    /// More text than [`crate::limits::MESSAGE_SIZE_BYTES_MAX`].
    #[error("the message is too large")]
    MessageTooLarge,
    /// Stored access policies that break a limit.
    #[error("stored access policies: {0}")]
    Policies(#[from] PolicyError),
    /// Service properties that break a limit.
    #[error("service properties: {0}")]
    ServiceProperties(#[from] ServicePropertiesError),
    /// The partition layer could not answer.
    #[error(transparent)]
    Partition(#[from] PartitionError),
}

impl QueueError {
    /// The error of the partition layer, if it is the cause.
    pub(crate) fn below(&self) -> Option<&PartitionError> {
        match self {
            QueueError::Partition(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DecodeError> for QueueError {
    /// A stored row that can't be decoded is damage, which is never reported as "not found".
    fn from(error: DecodeError) -> Self {
        QueueError::Partition(PartitionError::Storage(format!("stored row: {error}")))
    }
}
