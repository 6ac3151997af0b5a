//! The two files of the stream manager's log: their paths, and what a start reads from them.

use super::state::State;
use crate::error::{StreamError, is_disk_full};
use bytes::Bytes;

pub(super) const FOLDER: &str = "stream_manager";
/// In the order in which they are written.
pub(crate) const PATHS: [&str; 2] = ["stream_manager/log", "stream_manager/log.second"];

/// What a start reads from the log after a stop of any kind.
pub(crate) struct LogRecovery {
    pub(crate) state: State,
    pub(super) generation: u64,
    /// Which of its files were missing or damaged.
    pub(crate) damaged: Vec<&'static str>,
    /// The bytes of each file up to the end of the last record, if it has all records as they were written.
    pub(super) whole: [Option<Bytes>; 2],
}

pub(super) fn write_failed(error: std::io::Error) -> StreamError {
    if is_disk_full(&error) { StreamError::DiskFull } else { StreamError::write(PATHS[0], &error) }
}
