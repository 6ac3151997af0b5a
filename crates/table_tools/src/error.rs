//! Why a tool did not do what was wanted: one line, which names the thing and what was kept of the work.

use std::io;
use storage_client::Error;

/// Why a tool ended early.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The service refused or failed.
    #[error("{0}")]
    Service(#[from] Error),
    /// A file can't be read or written.
    #[error("{path}: {error}")]
    File {
        /// Its path.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// A file's content can't be used.
    #[error("{path}: line {line}: {what}")]
    Line {
        /// Its path.
        path: String,
        /// From 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// The service's answer, or what was given, makes no sense.
    #[error("{0}")]
    Refused(String),
    /// A signal ended it.
    #[error("stopped")]
    Stopped,
    /// Any of these, with what there is of the work.
    #[error("{error}; {kept}")]
    Kept {
        /// What went wrong.
        error: Box<ToolError>,
        /// What was done, where it is, and how to go on.
        kept: String,
    },
}

impl ToolError {
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        ToolError::Refused(what.into())
    }

    pub(crate) fn file(path: &str, error: io::Error) -> Self {
        ToolError::File { path: path.to_owned(), error }
    }

    /// The same error with what was kept of the work.
    pub(crate) fn keeping(self, kept: impl Into<String>) -> Self {
        ToolError::Kept { error: Box::new(self), kept: kept.into() }
    }

    /// Whether a signal ended it.
    pub fn is_stopped(&self) -> bool {
        match self {
            ToolError::Stopped => true,
            ToolError::Kept { error, .. } => error.is_stopped(),
            _ => false,
        }
    }
}
