//! What is wrong with a stored thing: a part, a document, a backup.
//!
//! An error names the thing and says what is wrong. None of them is ever taken for "nothing there".

/// A stored thing can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoredError {
    /// It was written by another installation: the bucket or the keys are shared by mistake.
    #[error("{what} belongs to stamp {found}, not to {expected}: two stamps use the same place")]
    OtherStamp {
        /// Which thing.
        what: String,
        /// The stamp in it.
        found: String,
        /// The stamp of this process.
        expected: String,
    },
    /// It was written by a newer version of the program.
    #[error("{what} has format {found}, this program reads up to {newest}: start a newer version")]
    NewerFormat {
        /// Which thing.
        what: String,
        /// The format in it.
        found: u16,
        /// The newest format that is understood.
        newest: u16,
    },
    /// Bytes are missing or left over.
    #[error("{what} is cut: {found} bytes where {expected} are needed")]
    Cut {
        /// Which thing.
        what: String,
        /// Bytes that are there.
        found: u64,
        /// Bytes that it must have.
        expected: u64,
    },
    /// Its bytes are not those that were written.
    #[error("{what} is damaged: the checksum of its {of} differs")]
    WrongChecksum {
        /// Which thing.
        what: String,
        /// Which bytes of it.
        of: &'static str,
    },
    /// The checksums are right and the content is not.
    #[error("{what} is damaged: {why}")]
    Malformed {
        /// Which thing.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// It should be there.
    #[error("{what} is missing")]
    Missing {
        /// Which thing.
        what: String,
    },
}

impl StoredError {
    /// A thing whose content is wrong.
    pub(crate) fn malformed(what: &impl std::fmt::Display, why: &impl std::fmt::Display) -> Self {
        StoredError::Malformed { what: what.to_string(), why: why.to_string() }
    }
}
