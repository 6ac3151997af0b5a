//! Values of key columns: what a key is before it is encoded.
//!
//! What always holds: values of one kind are ordered as their encodings are, numbers and instants by size,
//! Guids, bytes and texts by their bytes (of UTF-8; that is the order of `COLLATE "C"`). Each value has one
//! text, from which it can be read again.

use super::error::KeyError;
use super::hex::{from_hex, to_hex};
use super::kind::KeyKind;
use base::Ticks;
use base::date_time::{date_time_text, parse_date_time};
use base::guid::{guid_text, parse_bare_guid, parse_guid};
use std::fmt;

impl KeyKind {
    /// The kind of a name.
    pub fn parse(name: &str) -> Result<Self, KeyError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| KeyError::NoKind(shortened(name)))
    }

    /// How values of the kind are written.
    fn wanted(self) -> &'static str {
        match self {
            KeyKind::Int32 => "write a whole number from -2147483648 to 2147483647",
            KeyKind::Int64 => "write a whole number from -9223372036854775808 to 9223372036854775807",
            KeyKind::Guid => "write 32 hexadecimal digits, as in c9da6455-213d-42c9-9a79-3e9149a57833",
            KeyKind::Binary => "write two hexadecimal digits for each byte",
            KeyKind::Text => "write any text",
            KeyKind::DateTime => "write an instant from 1601 to 9999, as in 2026-11-27T22:23:02.5Z",
        }
    }

    /// What the error of a text that is no value of this kind says.
    pub(crate) fn no_value(self, text: &str) -> KeyError {
        KeyError::NoValue { kind: self, text: shortened(text), wanted: self.wanted() }
    }
}

/// Characters of a refused text that a message repeats.
const SHOWN_CHARS_MAX: usize = 60;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A value of a key's column. Values of different kinds are never keys of one map; their order means nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyValue {
    /// See [`KeyKind::Int32`].
    Int32(i32),
    /// See [`KeyKind::Int64`].
    Int64(i64),
    /// The bytes in the order of the text.
    Guid([u8; 16]),
    /// See [`KeyKind::Binary`].
    Binary(Vec<u8>),
    /// See [`KeyKind::Text`].
    Text(String),
    /// Not after [`base::date_time::TICKS_MAX`].
    DateTime(Ticks),
}

impl KeyValue {
    /// Its kind.
    pub fn kind(&self) -> KeyKind {
        match self {
            KeyValue::Int32(_) => KeyKind::Int32,
            KeyValue::Int64(_) => KeyKind::Int64,
            KeyValue::Guid(_) => KeyKind::Guid,
            KeyValue::Binary(_) => KeyKind::Binary,
            KeyValue::Text(_) => KeyKind::Text,
            KeyValue::DateTime(_) => KeyKind::DateTime,
        }
    }

    /// Reads the text that [`KeyValue::text`] writes; Guids with or without hyphens, in either case.
    pub fn parse(kind: KeyKind, text: &str) -> Result<Self, KeyError> {
        let value = match kind {
            KeyKind::Int32 => text.parse().ok().map(KeyValue::Int32),
            KeyKind::Int64 => text.parse().ok().map(KeyValue::Int64),
            KeyKind::Guid => parse_guid(text).or_else(|| parse_bare_guid(text)).map(KeyValue::Guid),
            KeyKind::Binary => from_hex(text).map(KeyValue::Binary),
            KeyKind::Text => Some(KeyValue::Text(text.to_owned())),
            KeyKind::DateTime => parse_date_time(text).ok().map(KeyValue::DateTime),
        };
        value.ok_or_else(|| kind.no_value(text))
    }

    /// The value as text, without quotes: what documents and command lines have.
    pub fn text(&self) -> String {
        match self {
            KeyValue::Int32(value) => value.to_string(),
            KeyValue::Int64(value) => value.to_string(),
            KeyValue::Guid(guid) => guid_text(guid),
            KeyValue::Binary(bytes) => to_hex(bytes),
            KeyValue::Text(text) => text.clone(),
            KeyValue::DateTime(at) => date_time_text(*at),
        }
    }

    /// Whether no value of the kind comes before it.
    pub(crate) fn is_least(&self) -> bool {
        match self {
            KeyValue::Int32(value) => *value == i32::MIN,
            KeyValue::Int64(value) => *value == i64::MIN,
            KeyValue::Guid(guid) => *guid == [0; 16],
            KeyValue::Binary(bytes) => bytes.is_empty(),
            KeyValue::Text(text) => text.is_empty(),
            KeyValue::DateTime(at) => at.0 == 0,
        }
    }

    /// The value that comes right after it, if there is one.
    pub(crate) fn next(&self) -> Option<Self> {
        Some(match self {
            KeyValue::Int32(value) => KeyValue::Int32(value.checked_add(1)?),
            KeyValue::Int64(value) => KeyValue::Int64(value.checked_add(1)?),
            KeyValue::Guid(guid) => KeyValue::Guid(u128::from_be_bytes(*guid).checked_add(1)?.to_be_bytes()),
            KeyValue::Binary(bytes) => KeyValue::Binary([bytes.as_slice(), &[0]].concat()),
            KeyValue::Text(text) => KeyValue::Text(format!("{text}\0")),
            KeyValue::DateTime(at) if *at >= base::date_time::TICKS_MAX => return None,
            KeyValue::DateTime(at) => KeyValue::DateTime(Ticks(at.0 + 1)),
        })
    }
}

/// As messages show it: texts in quotes, bytes marked as such.
impl fmt::Display for KeyValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyValue::Text(text) => write!(out, "{:?}", shortened(text)),
            KeyValue::Binary(bytes) => write!(out, "x'{}'", shortened(&to_hex(bytes))),
            other => out.write_str(&other.text()),
        }
    }
}

impl From<i32> for KeyValue {
    fn from(value: i32) -> Self {
        KeyValue::Int32(value)
    }
}

impl From<i64> for KeyValue {
    fn from(value: i64) -> Self {
        KeyValue::Int64(value)
    }
}

impl From<&str> for KeyValue {
    fn from(text: &str) -> Self {
        KeyValue::Text(text.to_owned())
    }
}

impl From<Ticks> for KeyValue {
    fn from(at: Ticks) -> Self {
        KeyValue::DateTime(at)
    }
}

/// A key or bound in words: `17`, or `("eu", 17)`.
pub(crate) fn key_text(values: &[KeyValue]) -> String {
    match values {
        [one] => one.to_string(),
        many => format!("({})", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}
