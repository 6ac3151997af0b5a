//! What the commands read beside their arguments: the environment, and files up to a bound.

use crate::Failure;
use crate::bounded_file::read_text_bounded;
use std::ffi::OsString;
use std::path::Path;

/// Looks a variable of the environment up.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The text of a file of at most so many bytes.
pub(super) fn file_text(path: &Path, size_bytes_max: usize) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::of_words(format!("{}: {error}", path.display()));
    read_text_bounded(path, size_bytes_max).map_err(failed)
}
