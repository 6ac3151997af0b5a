//! What tells a move from all others.

use base::Ticks;
use std::fmt;

/// The id of a move: when it was planned and chance, in 32 hexadecimal digits. Ordered by that time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MoveId(String);

impl MoveId {
    /// Of an instant and 64 random bits.
    pub(crate) fn new(at: Ticks, chance: u64) -> Self {
        MoveId(format!("{:016x}{chance:016x}", at.0))
    }

    /// Reads an id.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 32 && text.bytes().all(is_digit)).then(|| MoveId(text.to_owned()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MoveId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
