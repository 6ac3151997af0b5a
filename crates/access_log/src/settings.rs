//! What is logged of requests, and where to.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Says something to whoever runs the server: that the file can't be written, or can again.
pub type Announce = fn(&str);

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// Appended to this file.
    File(PathBuf),
    /// Standard output.
    StandardOutput,
}

/// What is logged of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessSettings {
    /// Where lines go; `None`: nowhere.
    pub target: Option<AccessTarget>,
    /// Bytes after which a file is put aside; 0: never.
    pub file_size_bytes_max: u64,
    /// Requests that take so long are slow; `None`: none are.
    pub slow_from: Option<Duration>,
}

impl fmt::Display for AccessTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessTarget::File(path) => path.display().fmt(f),
            AccessTarget::StandardOutput => f.write_str("standard output"),
        }
    }
}
