//! Why a request to the stream layer failed, and by the kind of failure, what the caller does next.

use crate::ids::{ExtentId, StreamName};
use crate::owner::Owner;
use base::disk::is_open_refused;
use std::io;

/// The owner of a stream or an extent, and another one whose request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it belongs to {seen}, the request is of {given}")]
pub struct OwnerConflict {
    /// The owner.
    pub seen: Owner,
    /// Who asked.
    pub given: Owner,
}

/// A failure of the stream layer. Cloneable, because one failed sync fails every append that waited for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// No such stream.
    #[error("stream {0} does not exist")]
    NoStream(StreamName),
    /// The stream is there already.
    #[error("stream {0} exists")]
    StreamExists(StreamName),
    /// No such extent on this node.
    #[error("extent {0} does not exist")]
    NoExtent(ExtentId),
    /// The extent takes no more appends: append to a new one.
    #[error("extent {0} is sealed")]
    Sealed(ExtentId),
    /// A newer owner has the stream: stop serving it.
    #[error("extent {extent}: {owners}")]
    OldEpoch {
        /// Which extent.
        extent: ExtentId,
        /// Its owner, and who asked.
        owners: Box<OwnerConflict>,
    },
    /// A newer owner has the stream: stop serving it.
    #[error("stream {stream}: {owners}")]
    NotOwner {
        /// Which stream.
        stream: StreamName,
        /// Its owner, and who asked.
        owners: Box<OwnerConflict>,
    },
    /// Stored bytes are not what was written. Nothing was changed; restore from elsewhere or run a check.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// No space is left: nothing was written; try again when there is space.
    #[error("the disk is full")]
    DiskFull,
    /// The system has nothing left to open another file with: nothing was written; try again later.
    #[error("the system opens no more files: {0}")]
    OutOfFiles(String),
    /// The system starts no more threads, without which the layer can't be opened. Nothing that is stored has
    /// changed.
    #[error("the system starts no more threads ({name}): {error}")]
    OutOfThreads {
        /// What the thread is for.
        name: &'static str,
        /// The operating system's words.
        error: String,
    },
    /// The disk failed to read.
    #[error("reading {what} failed: {error}")]
    Read {
        /// Which file.
        what: String,
        /// The operating system's words.
        error: String,
    },
    /// A write or sync failed and it is unknown what the disk holds: writing stops until the process starts
    /// again.
    #[error("the disk failed and writing has stopped, restart to recover: {0}")]
    WritesStopped(String),
    /// The append is larger than an extent may be.
    #[error("an append of {size_bytes} bytes is larger than the allowed {size_bytes_max}")]
    TooLarge {
        /// Bytes of the append.
        size_bytes: u64,
        /// Bytes allowed.
        size_bytes_max: u64,
    },
    /// It is not known whether what was appended is there: nothing more is written before the streams are
    /// opened again.
    #[error("{0}")]
    OutcomeUnknown(String),
    /// The store that keeps the streams does not answer, or this process may not ask it any more: nothing was
    /// done.
    #[error("{0}")]
    Unavailable(String),
    /// The layer is closing.
    #[error("the stream layer is closing")]
    Closing,
    /// The data folder can't be used: the text says why and what to do.
    #[error("{0}")]
    Folder(String),
}

impl StreamError {
    /// A request of `given` for an extent of `seen`.
    pub(crate) fn old_epoch(extent: ExtentId, seen: Owner, given: Owner) -> Self {
        StreamError::OldEpoch { extent, owners: Box::new(OwnerConflict { seen, given }) }
    }

    /// A request of `given` for a stream of `seen`.
    pub fn not_owner(stream: &StreamName, seen: Owner, given: Owner) -> Self {
        StreamError::NotOwner { stream: stream.clone(), owners: Box::new(OwnerConflict { seen, given }) }
    }

    /// A failed read of `what`.
    pub(crate) fn read(what: &str, error: &io::Error) -> Self {
        StreamError::Read { what: what.to_owned(), error: error.to_string() }
    }

    /// A thread that could not be started.
    pub(crate) fn no_thread(name: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| StreamError::OutOfThreads { name, error: error.to_string() }
    }

    /// A failed write or sync of `what`.
    pub(crate) fn write(what: &str, error: &io::Error) -> Self {
        StreamError::WritesStopped(format!("{what}: {error}"))
    }
}

/// A file that could not be made, and for certain was not if the system lacked something for it.
pub(crate) fn not_made(what: &str, error: &io::Error) -> StreamError {
    if is_disk_full(error) {
        StreamError::DiskFull
    } else if is_open_refused(error) {
        StreamError::OutOfFiles(error.to_string())
    } else {
        StreamError::write(what, error)
    }
}

pub(crate) fn write_failed(path: &str, error: std::io::Error) -> StreamError {
    if is_disk_full(&error) { StreamError::DiskFull } else { StreamError::write(path, &error) }
}

/// Whether an I/O error says that space ran out.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
