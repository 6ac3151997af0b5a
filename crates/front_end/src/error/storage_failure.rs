//! The layer below could not answer: the client tries again, or the error is logged for the operator.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use base::ByteSize;
use partition::{
    PINNED_SNAPSHOT_IDLE_MAX, PINNED_SNAPSHOTS_MAX, PINNED_SNAPSHOTS_OF_ACCOUNT_MAX, PartitionError,
};

/// Of a disk, and of the lists of a stamp.
const NO_SPACE: &str = "The server has no space left: it takes no writes but deletions.";

/// Fewer missing bytes are not named.
const SHOWN_MISSING_BYTES_MIN: u64 = (1 << 20) / 20;

/// The same error; one of a full disk names the missing bytes.
pub(crate) fn with_missing_bytes(error: ApiError, missing_bytes: impl Fn() -> u64) -> ApiError {
    if error.message() != NO_SPACE {
        return error;
    }
    match missing_bytes() {
        // By now there is some again, or it is a matter of lists.
        missing if missing < SHOWN_MISSING_BYTES_MIN => error,
        missing => {
            let text =
                format!("{NO_SPACE} {:.1} MiB must become free first.", missing as f64 / f64::from(1 << 20));
            ApiError::with_message(ErrorCode::ServerBusy, text)
        }
    }
}

/// The error a client sees.
pub(crate) fn from_partition(error: &PartitionError) -> ApiError {
    match error {
        PartitionError::Unavailable(_)
        | PartitionError::NotMine
        | PartitionError::StoreAway(_)
        | PartitionError::Busy => ErrorCode::ServerBusy.into(),
        // A client that tries a write again must see that it may have been done.
        PartitionError::OutcomeUnknown(_) => ErrorCode::OperationTimedOut.into(),
        PartitionError::DiskFull => {
            // Also where the rest of the disk is kept back, and while a reserve is made again.
            tracing::error!(
                "a write was refused: space is scarce, free some on the disk, or of a stamp delete what is not needed; writes are \
                 taken again as soon as there is some (see Disk in docs/settings.md, docs/stamp.md)"
            );
            ApiError::with_message(ErrorCode::ServerBusy, NO_SPACE)
        }
        PartitionError::OutOfFiles(_) => {
            tracing::error!("a write was refused: {error}");
            ApiError::with_message(ErrorCode::ServerBusy, "The server can't open another file at present.")
        }
        PartitionError::TooLarge { size_bytes, size_bytes_max } => ApiError::with_message(
            ErrorCode::InvalidInput,
            format!(
                "The request would change {} of rows at once, and the server can change {}. Do it in parts: \
                 delete snapshots one by one, for example.",
                ByteSize(*size_bytes),
                ByteSize(*size_bytes_max)
            ),
        ),
        PartitionError::SnapshotExpired => ErrorCode::SnapshotExpired.into(),
        PartitionError::TooManySnapshots => ApiError::with_message(
            ErrorCode::ServerBusy,
            format!(
                "{PINNED_SNAPSHOTS_OF_ACCOUNT_MAX} snapshots of the account are pinned, or {PINNED_SNAPSHOTS_MAX} of all, and \
                 there can't be more: end one with snapshot-end, or wait until one is not used for {} s.",
                PINNED_SNAPSHOT_IDLE_MAX.as_secs()
            ),
        ),
        PartitionError::TooMuchToRead { .. } => ApiError::with_message(
            ErrorCode::InvalidInput,
            format!("There is too much for one request: {error}. Do it in parts."),
        ),
        _ => {
            tracing::error!("a request failed: {error}");
            ErrorCode::InternalError.into()
        }
    }
}
