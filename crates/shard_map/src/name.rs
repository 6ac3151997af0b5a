//! Names of catalogs, maps and shards.
//!
//! What always holds: a name has 1 to [`NAME_LEN_MAX`] letters, digits, `-`, `_` or `.` and begins with a
//! letter or a digit, so it can stand in file names, rows, addresses and messages as it is. Case matters.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Bytes of a name, at most.
pub const NAME_LEN_MAX: usize = 63;

/// A name. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// A text that is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name: a name has 1 to {NAME_LEN_MAX} letters, digits, `-`, `_` or `.`, and begins with a letter or \
     a digit"
)]
pub struct NameError(String);

impl Name {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let is_first = |byte: &u8| byte.is_ascii_alphanumeric();
        let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_name = text.len() <= NAME_LEN_MAX
            && text.as_bytes().first().is_some_and(is_first)
            && text.bytes().all(is_taken);
        if is_name { Ok(Name(text.into())) } else { Err(NameError(shortened(text))) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What of a refused text is repeated in a message: its first characters.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(NAME_LEN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().to_owned()
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_or_refused_whole() {
        for name in ["a", "Shard-1", "7", "eu.west_2", &"x".repeat(NAME_LEN_MAX)] {
            assert_eq!(Name::parse(name).expect(name).as_str(), name);
        }
        for text in ["", "-a", ".a", "a b", "ä", "a/b", "a'", &"x".repeat(NAME_LEN_MAX + 1)] {
            assert!(Name::parse(text).is_err(), "{text}");
        }
        let long = Name::parse(&"ä".repeat(1000)).expect_err("too long").to_string();
        assert!(long.starts_with("`ää") && long.contains("ä…` is no name"), "{long}");
    }
}
