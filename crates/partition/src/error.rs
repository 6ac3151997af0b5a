//! Why the partition layer could not answer, and by its kind, what the caller does next.

use base::ByteSize;

use std::io;
use stream::StreamError;

/// A failure of the partition layer. None of them ever means "no rows".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// The range is being loaded or handed over: try again.
    #[error("range is not served right now: {0}")]
    Unavailable(String),
    /// Another process has the range, or may have it: nothing was done, ask its owner.
    #[error("range is not served here any more")]
    NotMine,
    /// It may have been done, and whoever loads the range next finds that out.
    #[error("the outcome is not known: {0}")]
    OutcomeUnknown(String),
    /// The store below does not answer: nothing was done, try again.
    #[error("the store is away: {0}")]
    StoreAway(String),
    /// Too much is waiting: try again later.
    #[error("too many operations are waiting")]
    Busy,
    /// The disk is full: reads go on, writes don't until there is space.
    #[error("the disk is full")]
    DiskFull,
    /// The system opens no more files: what needs no new one goes on, the rest doesn't until others are
    /// closed.
    #[error("{0}")]
    OutOfFiles(String),
    /// The system starts no more threads: the layer can't be opened, or ranges can't be split or merged.
    /// Nothing that is stored has changed.
    #[error("{0}")]
    OutOfThreads(String),
    /// An operation would change more at once than one record of the log holds. Nothing was changed.
    #[error(
        "an operation would change {} at once, and {} are allowed",
        ByteSize(*size_bytes),
        ByteSize(*size_bytes_max)
    )]
    TooLarge {
        /// Bytes of its changes.
        size_bytes: u64,
        /// Bytes allowed.
        size_bytes_max: u64,
    },
    /// An operation would read more rows at once than may be in memory for it. Nothing was changed. With
    /// smaller [`Read::Range`](crate::Read::Range)s it reads less.
    #[error("an operation would read more than {} of rows at once", ByteSize(*size_bytes_max))]
    TooMuchToRead {
        /// Bytes allowed.
        size_bytes_max: u64,
    },
    /// A pinned snapshot is gone: its time was over, there was no room for it, or this is another process.
    #[error("the pinned snapshot is gone")]
    SnapshotExpired,
    /// As many snapshots are pinned as may be; nothing was done.
    #[error("too many snapshots are pinned")]
    TooManySnapshots,
    /// What is stored could not be read or written.
    #[error("storage failed: {0}")]
    Storage(String),
    /// The layer was opened with settings that make no sense.
    #[error("settings: {0}")]
    Settings(String),
    /// An operation broke its contract: a bug in the service that made it. Nothing was changed.
    #[error("operation is not well-formed: {0}")]
    Operation(&'static str),
}

impl PartitionError {
    /// Whether it says for certain that nothing of what was asked is stored, and that the same may work
    /// later.
    pub fn is_refusal(&self) -> bool {
        matches!(self, PartitionError::DiskFull | PartitionError::OutOfFiles(_))
    }

    /// A thread that could not be started.
    pub(crate) fn no_thread(name: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| StreamError::OutOfThreads { name, error: error.to_string() }.into()
    }

    /// Whether an operation that ended with it has changed nothing for certain, now and after a restart.
    /// Otherwise it may have, or may yet: what was appended is durable or not, and only the next start knows.
    pub(crate) fn changed_nothing(&self) -> bool {
        match self {
            // They come before a decision, or from an append that did not begin.
            PartitionError::NotMine | PartitionError::Busy | PartitionError::StoreAway(_) => true,
            PartitionError::Settings(_) | PartitionError::Operation(_) => true,
            PartitionError::TooLarge { .. } | PartitionError::TooMuchToRead { .. } => true,
            PartitionError::SnapshotExpired | PartitionError::TooManySnapshots => true,
            PartitionError::DiskFull | PartitionError::OutOfFiles(_) | PartitionError::OutOfThreads(_) => {
                true
            }
            PartitionError::Unavailable(_)
            | PartitionError::Storage(_)
            | PartitionError::OutcomeUnknown(_) => false,
        }
    }

    /// Whether it passes without anybody doing something about what is stored.
    pub fn is_transient(&self) -> bool {
        self.is_refusal()
            || matches!(
                self,
                PartitionError::Unavailable(_)
                    | PartitionError::NotMine
                    | PartitionError::Busy
                    | PartitionError::TooManySnapshots
                    | PartitionError::OutcomeUnknown(_)
                    | PartitionError::StoreAway(_)
            )
    }
}

impl From<StreamError> for PartitionError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::DiskFull => PartitionError::DiskFull,
            StreamError::OutOfFiles(_) => PartitionError::OutOfFiles(error.to_string()),
            StreamError::OutOfThreads { .. } => PartitionError::OutOfThreads(error.to_string()),
            StreamError::OldEpoch { .. } | StreamError::NotOwner { .. } | StreamError::Closing => {
                PartitionError::Unavailable(error.to_string())
            }
            StreamError::OutcomeUnknown(why) => PartitionError::OutcomeUnknown(why),
            StreamError::Unavailable(why) => PartitionError::StoreAway(why),
            StreamError::TooLarge { size_bytes, size_bytes_max } => {
                PartitionError::TooLarge { size_bytes, size_bytes_max }
            }
            other => PartitionError::Storage(other.to_string()),
        }
    }
}
