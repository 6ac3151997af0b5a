//! What the commands share: what they read beside their arguments, and their own exit code.

use crate::Failure;
use crate::bounded_file::read_text_bounded;
use settings_file::FILE_SIZE_BYTES_MAX;
use shard_backend::Schema;
use shard_map::Name;
use std::ffi::OsString;
use std::path::Path;

/// Exit code for what is not as it should be: copies that differ, advice of the lint.
pub(super) const EXIT_AMISS: u8 = 3;
/// Looks a variable of the environment up.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The text of a file of at most so many bytes.
pub(super) fn file_text(path: &Path, size_bytes_max: usize) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::of_words(format!("{}: {error}", path.display()));
    read_text_bounded(path, size_bytes_max).map_err(failed)
}

/// The tables that a file declares.
pub(super) fn schema(path: &Path) -> Result<Schema, Failure> {
    let mistaken = |error| Failure::of_words(format!("{}: {error}", path.display()));
    Schema::parse(&file_text(path, FILE_SIZE_BYTES_MAX)?).map_err(mistaken)
}

/// A name as it was typed.
pub(super) fn name(text: &str) -> Result<Name, Failure> {
    Name::parse(text).map_err(|error| Failure::of_settings(&error))
}
