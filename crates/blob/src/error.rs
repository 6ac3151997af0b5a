//! What can go wrong in the Blob service: one kind for each thing that a caller gets.
//!
//! The front end turns each kind into a status, a code and a message.

use base::codec::DecodeError;
use partition::PartitionError;
use service::{PolicyError, ServicePropertiesError};

/// Why an operation of the Blob service was refused or failed. A refusal changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say it.
pub enum BlobError {
    #[error("the container does not exist")]
    ContainerNotFound,
    #[error("the container exists already")]
    ContainerAlreadyExists,
    #[error("the blob does not exist")]
    BlobNotFound,
    #[error("the blob exists already")]
    BlobAlreadyExists,
    #[error("a name has characters that it may not have")]
    InvalidResourceName,
    #[error("a name is too short or too long")]
    NameLength,
    #[error("a name has control characters, or nothing but dots, which no address can have")]
    UnaddressableName,
    #[error("a condition is not met")]
    ConditionNotMet,
    #[error("the reader has it already")]
    NotModified,
    #[error("a condition that can't be satisfied")]
    UnsatisfiableCondition,
    #[error("the source's condition is not met")]
    SourceConditionNotMet,
    #[error("the source is what its reader has already")]
    SourceNotModified,
    #[error("the blob is of another type")]
    InvalidBlobType,
    #[error("block ids of one blob must have the same length")]
    InvalidBlobOrBlock,
    #[error("a block id that can't be one")]
    InvalidBlockId,
    #[error("the block list names a block that is not there")]
    InvalidBlockList,
    #[error("the block list is too long")]
    BlockListTooLong,
    #[error(
        "more than {} rows, or {} MiB of them, are stored under the blob's name: snapshots, versions, staged blocks, \
         ranges of pages",
        crate::limits::ROWS_OF_A_BLOB_MAX,
        partition::OPERATION_READ_SIZE_BYTES_MAX >> 20
    )]
    TooManyRows,
    #[error("too many blocks")]
    BlockCountExceedsLimit,
    #[error("the body is too large")]
    BodyTooLarge,
    #[error("the range starts beyond the end of {size} bytes")]
    InvalidRange { size: u64 },
    #[error("the range of pages is not one")]
    InvalidPageRange,
    #[error("the blob is sealed")]
    BlobIsSealed,
    #[error("the append would not be at the place that was asked for")]
    AppendPositionConditionNotMet,
    #[error("the blob would be larger than was asked for")]
    MaxBlobSizeConditionNotMet,
    #[error("the sequence number is not what was asked for")]
    SequenceNumberConditionNotMet,
    #[error("the sequence number would be too large")]
    SequenceNumberIncrementTooLarge,
    #[error("the blob has snapshots")]
    SnapshotsPresent,
    #[error("the earlier snapshot does not exist")]
    PreviousSnapshotNotFound,
    #[error("the earlier snapshot is newer")]
    PreviousSnapshotCannotBeNewer,
    #[error("the blob was overwritten since the snapshot")]
    BlobOverwritten,
    #[error("the blob is archived")]
    BlobArchived,
    #[error("the blob is being rehydrated")]
    BlobBeingRehydrated,
    #[error("the blob has no tier of that kind")]
    InvalidBlobTier,
    #[error("the tier is not for blobs of this type")]
    AccessTierNotSupportedForBlobType,
    #[error("metadata is malformed")]
    InvalidMetadata,
    #[error("metadata is too large")]
    MetadataTooLarge,
    #[error("a metadata name is empty")]
    EmptyMetadataKey,
    #[error("too many tags, or too long")]
    TagsTooLarge,
    #[error("a tag has no name")]
    EmptyTagName,
    #[error("two tags have one name")]
    DuplicateTagNames,
    #[error("a tag has characters that it may not have")]
    InvalidTag,
    #[error("{0}")]
    InvalidTagFilter(String),
    #[error("lease: {0}")]
    Lease(#[from] LeaseError),
    #[error("stored access policies: {0}")]
    Policies(#[from] PolicyError),
    #[error("service properties: {0}")]
    ServiceProperties(#[from] ServicePropertiesError),
    #[error("a marker that is not one of a listing")]
    InvalidMarker,
    #[error("the credentials allow to create, not to overwrite")]
    UnauthorizedBlobOverwrite,
    #[error("the blob was written with a key, and none is given")]
    EncryptionKeyMissing,
    #[error("the blob was written with another key")]
    EncryptionKeyMismatch,
    #[error("the blob was written without a key")]
    EncryptionKeyUnknown,
    #[error("the blob has another encryption scope")]
    EncryptionScopeMismatch,
    #[error("the container allows no other encryption scope than its own")]
    EncryptionScopeForbidden,
    #[error("the version is the base blob, which is not deleted by its id")]
    VersionIsCurrent,
    #[error("the retention must be 1 to 365 days")]
    RetentionDays,
    #[error(transparent)]
    Partition(#[from] PartitionError),
}

/// Why a lease is in the way, or is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The names say it; each is one code of the protocol.
#[error("{self:?}")]
pub enum LeaseError {
    AlreadyPresent,
    IsBreakingAndCannotBeAcquired,
    IsBreakingAndCannotBeChanged,
    IsBrokenAndCannotBeRenewed,
    IdMismatchWithLeaseOperation,
    NotPresentWithLeaseOperation,
    /// Something is to be written and there is a lease.
    IdMissing,
    IdMismatchWithOperation,
    NotPresentWithOperation,
    Lost,
}

impl BlobError {
    /// What the partition layer could not do, if that is why.
    pub(crate) fn below(&self) -> Option<&PartitionError> {
        match self {
            BlobError::Partition(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DecodeError> for BlobError {
    /// A stored row that can't be read: what is stored is damaged, which is never "not found".
    fn from(error: DecodeError) -> Self {
        BlobError::Partition(PartitionError::Storage(format!("stored row: {error}")))
    }
}
