//! The token of a pinned snapshot, and its header.

use std::fmt;
use std::sync::Arc;

/// The header of a snapshot.
pub(super) const SNAPSHOT: &str = "x-larimar-snapshot";

/// Letters of a token at most.
const TOKEN_LEN_MAX: usize = 128;

/// A pinned snapshot, as the service names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotToken(Arc<str>);

impl SnapshotToken {
    /// From a text that one was written as; `None` if no token is such.
    pub fn parse(text: &str) -> Option<SnapshotToken> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let fits = (1..=TOKEN_LEN_MAX).contains(&text.len());
        (is_plain && fits).then(|| SnapshotToken(text.into()))
    }
}

impl fmt::Display for SnapshotToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_what_can_be_a_header() {
        assert_eq!(SnapshotToken::parse("00ff-1").map(|token| token.to_string()), Some("00ff-1".to_owned()));
        for text in ["", "a b", "a\r\nb: c", "é", &"a".repeat(TOKEN_LEN_MAX + 1)] {
            assert_eq!(SnapshotToken::parse(text), None, "{text}");
        }
    }
}
