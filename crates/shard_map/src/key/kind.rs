//! The kinds of key columns. Apart from values and errors because both name them.

use std::fmt;

/// The kind of a key's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// A signed integer of 32 bits.
    Int32,
    /// A signed integer of 64 bits.
    Int64,
    /// A Guid, ordered by its 16 bytes as they are printed.
    Guid,
    /// Bytes.
    Binary,
    /// Text, ordered by the bytes of its UTF-8.
    Text,
    /// An instant in UTC from 1601 to 9999, in units of 100 ns.
    DateTime,
}

impl KeyKind {
    /// All kinds.
    pub const ALL: [KeyKind; 6] =
        [KeyKind::Int32, KeyKind::Int64, KeyKind::Guid, KeyKind::Binary, KeyKind::Text, KeyKind::DateTime];

    /// Its name in documents and messages.
    pub fn name(self) -> &'static str {
        match self {
            KeyKind::Int32 => "int32",
            KeyKind::Int64 => "int64",
            KeyKind::Guid => "guid",
            KeyKind::Binary => "binary",
            KeyKind::Text => "text",
            KeyKind::DateTime => "date-time",
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
