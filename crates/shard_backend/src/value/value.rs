//! A value of a column.
//!
//! What always holds: two values are equal exactly if their canonical encodings are (`digest/canonical.rs`).
//! So all NaNs are one value, because databases do not keep their bits, and -0 is 0, because databases
//! compare them as equal and SQLite does not keep the sign.

use super::column_kind::ColumnKind;
use base::Ticks;
use base::date_time::date_time_text;
use base::guid::guid_text;
use shard_map::KeyValue;
use std::fmt;

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value.
    Null,
    /// See [`ColumnKind::Bool`].
    Bool(bool),
    /// See [`ColumnKind::Int32`].
    Int32(i32),
    /// See [`ColumnKind::Int64`].
    Int64(i64),
    /// See [`ColumnKind::Float64`].
    Float64(f64),
    /// See [`ColumnKind::Text`].
    Text(String),
    /// See [`ColumnKind::Binary`].
    Binary(Vec<u8>),
    /// Not after [`base::date_time::TICKS_MAX`].
    DateTime(Ticks),
    /// The bytes in the order of the text.
    Guid([u8; 16]),
}

/// The bits of a quiet NaN, which stand for all of them.
const NAN_BITS: u64 = 0x7FF8_0000_0000_0000;

/// The bits that stand for a number: those of one NaN for all, those of 0 for -0.
pub(crate) fn canonical_bits(number: f64) -> u64 {
    match number {
        number if number.is_nan() => NAN_BITS,
        0.0 => 0,
        number => number.to_bits(),
    }
}

impl Value {
    /// Its kind; none of NULL.
    pub fn kind(&self) -> Option<ColumnKind> {
        Some(match self {
            Value::Null => return None,
            Value::Bool(_) => ColumnKind::Bool,
            Value::Int32(_) => ColumnKind::Int32,
            Value::Int64(_) => ColumnKind::Int64,
            Value::Float64(_) => ColumnKind::Float64,
            Value::Text(_) => ColumnKind::Text,
            Value::Binary(_) => ColumnKind::Binary,
            Value::DateTime(_) => ColumnKind::DateTime,
            Value::Guid(_) => ColumnKind::Guid,
        })
    }

    /// Its bytes in memory, as bounds of batches count them.
    pub fn size_bytes(&self) -> usize {
        let content = match self {
            Value::Text(text) => text.len(),
            Value::Binary(bytes) => bytes.len(),
            _ => 0,
        };
        size_of::<Value>() + content
    }

    /// The value as one of a key, if it can be one.
    pub fn key_value(&self) -> Option<KeyValue> {
        Some(match self {
            Value::Int32(value) => KeyValue::Int32(*value),
            Value::Int64(value) => KeyValue::Int64(*value),
            Value::Text(text) => KeyValue::Text(text.clone()),
            Value::Binary(bytes) => KeyValue::Binary(bytes.clone()),
            Value::DateTime(at) => KeyValue::DateTime(*at),
            Value::Guid(guid) => KeyValue::Guid(*guid),
            Value::Null | Value::Bool(_) | Value::Float64(_) => return None,
        })
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Int32(one), Value::Int32(other)) => one == other,
            (Value::Int64(one), Value::Int64(other)) => one == other,
            (Value::Float64(one), Value::Float64(other)) => canonical_bits(*one) == canonical_bits(*other),
            (Value::Text(one), Value::Text(other)) => one == other,
            (Value::Binary(one), Value::Binary(other)) => one == other,
            (Value::DateTime(one), Value::DateTime(other)) => one == other,
            (Value::Guid(one), Value::Guid(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl From<KeyValue> for Value {
    fn from(value: KeyValue) -> Self {
        match value {
            KeyValue::Int32(value) => Value::Int32(value),
            KeyValue::Int64(value) => Value::Int64(value),
            KeyValue::Guid(guid) => Value::Guid(guid),
            KeyValue::Binary(bytes) => Value::Binary(bytes),
            KeyValue::Text(text) => Value::Text(text),
            KeyValue::DateTime(at) => Value::DateTime(at),
        }
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Value::Int32(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int64(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

/// Characters or bytes of a long value that a message repeats.
const SHOWN_MAX: usize = 60;

/// As messages show it.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => out.write_str("NULL"),
            Value::Bool(value) => write!(out, "{value}"),
            Value::Int32(value) => write!(out, "{value}"),
            Value::Int64(value) => write!(out, "{value}"),
            Value::Float64(value) => write!(out, "{value:?}"),
            Value::Text(text) => write!(out, "{:?}", text.chars().take(SHOWN_MAX).collect::<String>()),
            Value::Binary(bytes) => {
                out.write_str("x'")?;
                bytes.iter().take(SHOWN_MAX).try_for_each(|byte| write!(out, "{byte:02x}"))?;
                out.write_str("'")
            }
            Value::DateTime(at) => out.write_str(&date_time_text(*at)),
            Value::Guid(guid) => out.write_str(&guid_text(guid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_database_tells_apart_are_equal() {
        let float = Value::Float64;
        let other_nan = f64::from_bits(0xFFF0_0000_0000_0001);
        for (one, other, is_equal) in [
            (float(f64::NAN), float(other_nan), true),
            (float(0.0), float(-0.0), true),
            (float(f64::INFINITY), float(f64::NEG_INFINITY), false),
            (float(1.0), float(1.0 + f64::EPSILON), false),
            (float(0.0), float(f64::from_bits(1)), false),
            (Value::Int32(1), Value::Int64(1), false),
            (Value::Text(String::new()), Value::Null, false),
            (Value::Text("a".into()), Value::Binary(b"a".to_vec()), false),
        ] {
            assert_eq!(one == other, is_equal, "{one} {other}");
        }
    }
}
