//! What the Table service refuses, in the protocol's terms.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::error::storage_failure::from_partition;
use table::{FilterError, TableError};

/// The error a client sees.
pub(crate) fn from_table(error: TableError) -> ApiError {
    match error {
        TableError::TableNotFound => ErrorCode::TableNotFound.into(),
        TableError::TableAlreadyExists => ErrorCode::TableAlreadyExists.into(),
        TableError::ResourceNotFound => ErrorCode::ResourceNotFound.into(),
        TableError::EntityAlreadyExists => ErrorCode::EntityAlreadyExists.into(),
        TableError::UpdateConditionNotSatisfied => ErrorCode::UpdateConditionNotSatisfied.into(),
        TableError::TableNameCharacters(_) => ErrorCode::InvalidResourceName.into(),
        TableError::TableNameLength(_) => ApiError::with_message(
            ErrorCode::OutOfRangeInput,
            "The specified resource name length is not within the permissible limits.",
        ),
        TableError::TableNameReserved(_) => ErrorCode::InvalidInput.into(),
        TableError::KeyCharacters { key, value } => ApiError::with_message(
            ErrorCode::OutOfRangeInput,
            format!("The '{}' parameter of value '{value}' is out of range.", key.name()),
        ),
        // The service was seen to answer this for keys too; `KeyValueTooLarge` is only in lists of codes.
        TableError::KeyTooLong(_) => ErrorCode::PropertyValueTooLarge.into(),
        TableError::PropertyNameInvalid(_) => ErrorCode::PropertyNameInvalid.into(),
        TableError::PropertyNameTooLong => ErrorCode::PropertyNameTooLong.into(),
        TableError::PropertyValueTooLarge(_) => ErrorCode::PropertyValueTooLarge.into(),
        TableError::PropertyValueOutOfRange(_) => ErrorCode::OutOfRangeInput.into(),
        TableError::DuplicateProperties(_) => ErrorCode::DuplicatePropertiesSpecified.into(),
        TableError::TooManyProperties => ErrorCode::TooManyProperties.into(),
        TableError::EntityTooLarge => ErrorCode::EntityTooLarge.into(),
        TableError::TooManyOperations => ApiError::with_message(ErrorCode::InvalidInput, TOO_MANY_OPERATIONS),
        TableError::EmptyGroup => ErrorCode::InvalidInput.into(),
        TableError::InvalidDuplicateRow => ErrorCode::InvalidDuplicateRow.into(),
        TableError::CommandsInBatchActOnDifferentPartitions => {
            ErrorCode::CommandsInBatchActOnDifferentPartitions.into()
        }
        TableError::Policies(error) => ApiError::invalid_document_whole(&error.to_string()),
        TableError::ServiceProperties(error) => ApiError::invalid_document_whole(&error.to_string()),
        TableError::Partition(error) => from_partition(&error),
    }
}

/// The message of a batch with too many operations.
pub(crate) const TOO_MANY_OPERATIONS: &str =
    "The batch request operation exceeds the maximum 100 changes per change set.";

/// A filter that can't be read or is not served.
pub(crate) fn from_filter(error: FilterError) -> ApiError {
    match error {
        FilterError::NotImplemented { .. } => ErrorCode::NotImplemented.into(),
        FilterError::Syntax { .. }
        | FilterError::Literal { .. }
        | FilterError::Null { .. }
        | FilterError::Call { .. }
        | FilterError::TooComplex(_) => ApiError::with_message(ErrorCode::InvalidInput, error.to_string()),
    }
}
