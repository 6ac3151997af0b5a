//! The kinds of columns: what schemas declare, whatever a database calls its types.
//!
//! What always holds: each kind has one name; those that can be part of a key are kinds of `shard_map`, with
//! the same name.

use shard_map::KeyKind;
use std::fmt;

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ColumnKind {
    /// True or false.
    Bool,
    /// A signed integer of 32 bits.
    Int32,
    /// A signed integer of 64 bits.
    Int64,
    /// A number of IEEE 754 binary64.
    Float64,
    /// Text in Unicode, of any length.
    Text,
    /// Bytes.
    Binary,
    /// An instant in UTC from 1601 to 9999, in units of 100 ns.
    DateTime,
    /// A Guid, its 16 bytes in the order of its text.
    Guid,
}

impl ColumnKind {
    /// All kinds.
    pub const ALL: [ColumnKind; 8] = [
        ColumnKind::Bool,
        ColumnKind::Int32,
        ColumnKind::Int64,
        ColumnKind::Float64,
        ColumnKind::Text,
        ColumnKind::Binary,
        ColumnKind::DateTime,
        ColumnKind::Guid,
    ];

    /// Its name in schemas and messages.
    pub fn name(self) -> &'static str {
        match self {
            ColumnKind::Bool => "bool",
            ColumnKind::Int32 => "int32",
            ColumnKind::Int64 => "int64",
            ColumnKind::Float64 => "float64",
            ColumnKind::Text => "text",
            ColumnKind::Binary => "binary",
            ColumnKind::DateTime => "date-time",
            ColumnKind::Guid => "guid",
        }
    }

    /// The kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What it is as a key's column, if it can be one.
    pub fn key_kind(self) -> Option<KeyKind> {
        Some(match self {
            ColumnKind::Int32 => KeyKind::Int32,
            ColumnKind::Int64 => KeyKind::Int64,
            ColumnKind::Text => KeyKind::Text,
            ColumnKind::Binary => KeyKind::Binary,
            ColumnKind::DateTime => KeyKind::DateTime,
            ColumnKind::Guid => KeyKind::Guid,
            ColumnKind::Bool | ColumnKind::Float64 => return None,
        })
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_names_and_keys_the_same() {
        for kind in ColumnKind::ALL {
            assert_eq!(ColumnKind::named(kind.name()), Some(kind));
            assert!(kind.key_kind().is_none_or(|key| key.name() == kind.name()), "{kind}");
        }
        let keys: Vec<KeyKind> = ColumnKind::ALL.iter().filter_map(|kind| kind.key_kind()).collect();
        assert!(KeyKind::ALL.iter().all(|kind| keys.contains(kind)));
    }
}
