//! Why a folder can't be repaired, in one line for the operator.
//!
//! What always holds: a line says whether something was changed, and where the plan is if a run was broken
//! off.

use crate::data_folder;
use base::ByteSize;
use partition::PartitionError;
use std::path::PathBuf;
use stream::StreamError;

/// Why a folder can't be repaired.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RepairError {
    #[error(transparent)]
    Folder(#[from] data_folder::FolderError),
    #[error("{}: {error}", path.display())]
    Refused { path: PathBuf, error: StreamError },
    #[error("no repair can be planned: {0}; nothing was changed")]
    Failed(#[from] PartitionError),
    #[error("the operating system refuses the repair's threads: {0}")]
    Runtime(std::io::Error),
    #[error("the plan can't be written to {}: {error}; nothing was changed", path.display())]
    Json { path: PathBuf, error: std::io::Error },
    #[error(
        "the repair was broken off: {error}; run it again: its plan, which has all it may have lost, is in {run}"
    )]
    BrokenOff { run: String, error: PartitionError },
    #[error("{path}, which an earlier or this repair keeps in the data folder, can't be used: {error}")]
    Run { path: String, error: std::io::Error },
    #[error("no copy of {path} can be kept: {error}; nothing was changed")]
    Keep { path: String, error: std::io::Error },
    #[error(
        "the repair needs {} that are free, and {} are; nothing was changed",
        ByteSize(*needed_bytes),
        ByteSize(*free_bytes)
    )]
    TooLittleSpace { needed_bytes: u64, free_bytes: u64 },
}

impl From<StreamError> for RepairError {
    fn from(error: StreamError) -> Self {
        RepairError::Failed(error.into())
    }
}
