//! What the Queue service refuses, in the protocol's terms.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::error::storage_failure::from_partition;
use queue::QueueError;
use queue::limits::MESSAGE_SIZE_BYTES_MAX;
use service::NameError;

/// The error a client sees.
pub(crate) fn from_queue(error: QueueError) -> ApiError {
    match error {
        QueueError::QueueNotFound => ErrorCode::QueueNotFound.into(),
        QueueError::QueueAlreadyExists => ErrorCode::QueueAlreadyExists.into(),
        QueueError::QueueName(NameError::Length) => ApiError::with_message(
            ErrorCode::OutOfRangeInput,
            "The specified resource name length is not within the permissible limits.",
        ),
        QueueError::QueueName(NameError::Characters) => ApiError::with_message(
            ErrorCode::InvalidResourceName,
            "The specified resource name contains invalid characters.",
        ),
        QueueError::MetadataTooLarge => ErrorCode::MetadataTooLarge.into(),
        QueueError::MessageNotFound => ErrorCode::MessageNotFound.into(),
        QueueError::VisibleAfterExpiry => ErrorCode::InvalidQueryParameterValue.into(),
        QueueError::MessageTooLarge => message_too_large(),
        QueueError::Policies(error) => ApiError::invalid_document_whole(&error.to_string()),
        QueueError::ServiceProperties(error) => ApiError::invalid_document_whole(&error.to_string()),
        QueueError::Partition(error) => from_partition(&error),
    }
}

/// The error of an update with this `visibilitytimeout`.
pub(crate) fn from_update(error: QueueError, visibility_timeout: &str) -> ApiError {
    match error {
        QueueError::VisibleAfterExpiry => ApiError::invalid_parameter(
            "visibilitytimeout",
            visibility_timeout,
            "The message would be visible only after it expires.",
        ),
        other => from_queue(other),
    }
}

/// More text than a message may have.
pub(crate) fn message_too_large() -> ApiError {
    ApiError::body_too_large(MESSAGE_SIZE_BYTES_MAX as u64)
}
