//! Why values are no key of a map, or bytes no encoded key.

use super::kind::KeyKind;
use crate::limits::{COLUMNS_MAX, KEY_BYTES_MAX};

/// What is wrong with a key, a bound or a key type. Columns count from 1, as their readers do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A key type without columns, or with too many.
    #[error("a key has 1 to {COLUMNS_MAX} columns, and this one {0}")]
    Columns(usize),
    /// A text that names no kind.
    #[error("`{0}` is no kind of key: there are int32, int64, guid, binary, text and date-time")]
    NoKind(String),
    /// A value of another kind than the map's keys have.
    #[error("column {column} of the key is {expected}, and the value {value} is {found}")]
    WrongKind {
        /// Which column, from 1.
        column: usize,
        /// What the map has there.
        expected: KeyKind,
        /// What the value is.
        found: KeyKind,
        /// The value, as messages show it.
        value: String,
    },
    /// A key with more or fewer values than the map's keys have.
    #[error("the key is {expected}, and {found} values were given")]
    WrongCount {
        /// The kinds of the map's columns.
        expected: String,
        /// How many values there are.
        found: usize,
    },
    /// A text that is no value of a kind.
    #[error("`{text}` is no {kind}: {wanted}")]
    NoValue {
        /// The kind.
        kind: KeyKind,
        /// The text, or the JSON value, shortened.
        text: String,
        /// How values of that kind are written.
        wanted: &'static str,
    },
    /// An encoded key that is too long.
    #[error("the key takes {0} bytes encoded, more than {KEY_BYTES_MAX}")]
    TooLong(usize),
    /// Bytes that are no encoded key or bound of the type.
    #[error("the bytes {bytes} are no key or bound of the type {expected}")]
    Unreadable {
        /// The kinds of the columns.
        expected: String,
        /// The bytes, in hexadecimal digits.
        bytes: String,
    },
    /// A date-time outside of the years 1601 to 9999.
    #[error("column {0} of the key is a date-time after 9999-12-31")]
    DateTimeTooLate(usize),
}
