//! Errors of a checkpoint that does not read, or can't be written.
//!
//! What always holds: an error of a read names the block's place, by which a check finds it again.

use crate::error::PartitionError;
use stream::Location;

/// A row on its way into a checkpoint that can't go there.
pub(super) fn damaged_row(why: &str) -> PartitionError {
    PartitionError::Storage(format!("a row to be written to a checkpoint: {why}"))
}

/// A block that does not read, or does not fit to the others.
pub(super) fn damaged(location: Location, why: &str) -> PartitionError {
    PartitionError::Storage(format!(
        "checkpoint block at extent {}, byte {}: {why}",
        location.extent, location.offset
    ))
}
