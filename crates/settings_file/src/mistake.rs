//! What is wrong with a file, and where.

use base::nearest::nearest;

/// What is wrong with a file of settings, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SettingsFileError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

/// The line of a byte of the text, counted from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The end of a message about an unknown name: `; did you mean NAME?`, or nothing.
pub fn meant<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, names).map_or_else(String::new, |name| format!("; did you mean {name}?"))
}
