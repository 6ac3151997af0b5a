//! What the Blob service refuses, in the protocol's terms.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::error::storage_failure::from_partition;
use crate::shared_operations::service_settings::RETENTION_REASON;
use blob::{BlobError, LeaseError};

/// The error of a request for a container.
pub(crate) fn from_container(error: BlobError) -> ApiError {
    match error {
        BlobError::Lease(LeaseError::IdMismatchWithOperation) => {
            ErrorCode::LeaseIdMismatchWithContainerOperation.into()
        }
        BlobError::Lease(LeaseError::NotPresentWithOperation) => {
            ErrorCode::LeaseNotPresentWithContainerOperation.into()
        }
        BlobError::Lease(LeaseError::IdMissing) => ApiError::with_message(
            ErrorCode::LeaseIdMissing,
            "There is currently a lease on the container and no lease ID was specified in the request.",
        ),
        other => from_blob(other),
    }
}

/// The error a client sees.
pub(crate) fn from_blob(error: BlobError) -> ApiError {
    let code = match error {
        BlobError::ContainerNotFound => ErrorCode::ContainerNotFound,
        BlobError::ContainerAlreadyExists => ErrorCode::ContainerAlreadyExists,
        BlobError::BlobNotFound => ErrorCode::BlobNotFound,
        BlobError::BlobAlreadyExists => ErrorCode::BlobAlreadyExists,
        BlobError::InvalidResourceName => ErrorCode::InvalidResourceName,
        BlobError::UnaddressableName => ErrorCode::InvalidUri,
        BlobError::NameLength => {
            return ApiError::with_message(
                ErrorCode::OutOfRangeInput,
                "The specified resource name length is not within the permissible limits.",
            );
        }
        BlobError::ConditionNotMet => ErrorCode::ConditionNotMet,
        BlobError::NotModified => ErrorCode::NotModified,
        BlobError::UnsatisfiableCondition => ErrorCode::UnsatisfiableCondition,
        BlobError::SourceConditionNotMet | BlobError::SourceNotModified => ErrorCode::SourceConditionNotMet,
        BlobError::InvalidBlobType => ErrorCode::InvalidBlobType,
        BlobError::InvalidBlobOrBlock => ErrorCode::InvalidBlobOrBlock,
        BlobError::InvalidBlockId => ErrorCode::InvalidBlockId,
        BlobError::InvalidBlockList => ErrorCode::InvalidBlockList,
        BlobError::BlockListTooLong => ErrorCode::BlockListTooLong,
        BlobError::BlockCountExceedsLimit => ErrorCode::BlockCountExceedsLimit,
        BlobError::TooManyRows => {
            return ApiError::with_message(
                ErrorCode::InvalidInput,
                format!(
                    "There is too much for one request: {error}. Snapshots and versions can be deleted one by one, a page \
                     blob as a whole. What is refused even so goes with its container: read what is to stay from \
                     there, put it elsewhere and delete the container."
                ),
            );
        }
        BlobError::BodyTooLarge => ErrorCode::RequestBodyTooLarge,
        BlobError::InvalidRange { size } => return ApiError::of_range(ErrorCode::InvalidRange, size),
        BlobError::InvalidPageRange => ErrorCode::InvalidPageRange,
        BlobError::BlobIsSealed => ErrorCode::BlobIsSealed,
        BlobError::AppendPositionConditionNotMet => ErrorCode::AppendPositionConditionNotMet,
        BlobError::MaxBlobSizeConditionNotMet => ErrorCode::MaxBlobSizeConditionNotMet,
        BlobError::SequenceNumberConditionNotMet => ErrorCode::SequenceNumberConditionNotMet,
        BlobError::SequenceNumberIncrementTooLarge => ErrorCode::SequenceNumberIncrementTooLarge,
        BlobError::SnapshotsPresent => ErrorCode::SnapshotsPresent,
        BlobError::PreviousSnapshotNotFound => ErrorCode::PreviousSnapshotNotFound,
        BlobError::PreviousSnapshotCannotBeNewer => ErrorCode::PreviousSnapshotCannotBeNewer,
        BlobError::BlobOverwritten => ErrorCode::BlobOverwritten,
        BlobError::BlobArchived => ErrorCode::BlobArchived,
        BlobError::BlobBeingRehydrated => ErrorCode::BlobBeingRehydrated,
        BlobError::InvalidBlobTier => ErrorCode::InvalidBlobTier,
        BlobError::AccessTierNotSupportedForBlobType => ErrorCode::AccessTierNotSupportedForBlobType,
        BlobError::InvalidMetadata => ErrorCode::InvalidMetadata,
        BlobError::MetadataTooLarge => ErrorCode::MetadataTooLarge,
        BlobError::EmptyMetadataKey => ErrorCode::EmptyMetadataKey,
        BlobError::TagsTooLarge => ErrorCode::TagsTooLarge,
        BlobError::EmptyTagName => ErrorCode::EmptyTagName,
        BlobError::DuplicateTagNames => ErrorCode::DuplicateTagNames,
        BlobError::InvalidTag => ErrorCode::InvalidTag,
        BlobError::UnauthorizedBlobOverwrite => ErrorCode::UnauthorizedBlobOverwrite,
        BlobError::InvalidMarker => ErrorCode::OutOfRangeInput,
        BlobError::EncryptionKeyMissing => ErrorCode::BlobUsesCustomerSpecifiedEncryption,
        BlobError::EncryptionKeyMismatch => ErrorCode::BlobCustomerSpecifiedEncryptionMismatch,
        BlobError::EncryptionKeyUnknown => ErrorCode::BlobDoesNotUseCustomerSpecifiedEncryption,
        BlobError::EncryptionScopeMismatch => ErrorCode::BlobDoesNotMatchEncryptionScope,
        BlobError::EncryptionScopeForbidden => ErrorCode::RequestForbiddenByContainerEncryptionPolicy,
        BlobError::VersionIsCurrent => ErrorCode::OperationNotAllowedOnRootBlob,
        BlobError::RetentionDays => return ApiError::invalid_document_whole(RETENTION_REASON),
        BlobError::InvalidTagFilter(why) => {
            return ApiError::with_message(ErrorCode::InvalidQueryParameterValue, why);
        }
        BlobError::Lease(error) => from_lease(error),
        BlobError::Policies(error) => return ApiError::invalid_document_whole(&error.to_string()),
        BlobError::ServiceProperties(error) => return ApiError::invalid_document_whole(&error.to_string()),
        BlobError::Partition(error) => return from_partition(&error),
    };
    code.into()
}

fn from_lease(error: LeaseError) -> ErrorCode {
    match error {
        LeaseError::AlreadyPresent => ErrorCode::LeaseAlreadyPresent,
        LeaseError::IsBreakingAndCannotBeAcquired => ErrorCode::LeaseIsBreakingAndCannotBeAcquired,
        LeaseError::IsBreakingAndCannotBeChanged => ErrorCode::LeaseIsBreakingAndCannotBeChanged,
        LeaseError::IsBrokenAndCannotBeRenewed => ErrorCode::LeaseIsBrokenAndCannotBeRenewed,
        LeaseError::IdMismatchWithLeaseOperation => ErrorCode::LeaseIdMismatchWithLeaseOperation,
        LeaseError::NotPresentWithLeaseOperation => ErrorCode::LeaseNotPresentWithLeaseOperation,
        LeaseError::IdMissing => ErrorCode::LeaseIdMissing,
        LeaseError::IdMismatchWithOperation => ErrorCode::LeaseIdMismatchWithBlobOperation,
        LeaseError::NotPresentWithOperation => ErrorCode::LeaseNotPresentWithBlobOperation,
        LeaseError::Lost => ErrorCode::LeaseLost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text advised to delete snapshots one by one, also in answers to clients that did.
    #[test]
    fn of_too_many_rows_it_says_what_works() {
        let error = from_blob(BlobError::TooManyRows);
        let text = error.message();
        assert!(text.contains("more than 250000 rows, or 512 MiB of them"), "{text}");
        assert!(text.contains("one by one") && text.ends_with("delete the container."), "{text}");
    }
}
