//! Values in SQLite.
//!
//! | kind | type | value |
//! |---|---|---|
//! | bool, int32, int64 | integer | 0 or 1; the number |
//! | float64 | real | the number; SQLite has no NaN |
//! | text | text | as it is |
//! | date-time | text | `2026-11-28T14:05:00.0000000Z`: seven digits, so that their order is that of
//! instants; read without a zone, too, and with fewer digits where it is no key |
//! | binary, guid | blob | the bytes |
//!
//! What always holds: keys are compared as their encodings are; a date-time that says more than its instant
//! (more digits, a zone) is refused, because a copy would lose it and a digest would not see that.

use crate::schema::table::Column;
use crate::value::column_kind::ColumnKind;
use crate::value::value::Value;
use base::date_time::{parse_date_time, seven_digits_text};
use rusqlite::types::{Value as Sql, ValueRef};
use shard_map::KeyValue;

/// Digits of a second's fraction that an instant has.
const FRACTION_DIGITS_MAX: usize = 7;

/// What is stored, or what SQLite can't.
pub(super) fn stored(value: &Value) -> Result<Sql, String> {
    Ok(match value {
        Value::Null => Sql::Null,
        Value::Bool(value) => Sql::Integer(i64::from(*value)),
        Value::Int32(value) => Sql::Integer(i64::from(*value)),
        Value::Int64(value) => Sql::Integer(*value),
        Value::Float64(value) if value.is_nan() => return Err("SQLite can't store NaN".to_owned()),
        Value::Float64(value) => Sql::Real(*value),
        Value::Text(text) => Sql::Text(text.clone()),
        Value::Binary(bytes) => Sql::Blob(bytes.clone()),
        Value::DateTime(at) => Sql::Text(seven_digits_text(*at)),
        Value::Guid(guid) => Sql::Blob(guid.to_vec()),
    })
}

/// A value of a key.
pub(super) fn stored_key(value: &KeyValue) -> Sql {
    match value {
        KeyValue::Int32(value) => Sql::Integer(i64::from(*value)),
        KeyValue::Int64(value) => Sql::Integer(*value),
        KeyValue::Text(text) => Sql::Text(text.clone()),
        KeyValue::Binary(bytes) => Sql::Blob(bytes.clone()),
        KeyValue::DateTime(at) => Sql::Text(seven_digits_text(*at)),
        KeyValue::Guid(guid) => Sql::Blob(guid.to_vec()),
    }
}

/// The value of a column, or why it is none. In a key, instants have one text.
pub(super) fn read(column: &Column, is_key: bool, found: ValueRef<'_>) -> Result<Value, String> {
    let other =
        || Err(format!("there is a value of the type {}, which is no {}", found.data_type(), column.kind));
    let text = |bytes: &[u8]| match str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err("there is a text that is not UTF-8".to_owned()),
    };
    Ok(match (column.kind, found) {
        (_, ValueRef::Null) => Value::Null,
        (ColumnKind::Bool, ValueRef::Integer(number @ (0 | 1))) => Value::Bool(number == 1),
        (ColumnKind::Int32, ValueRef::Integer(number)) => match i32::try_from(number) {
            Ok(number) => Value::Int32(number),
            Err(_) => return Err(format!("{number} is no int32")),
        },
        (ColumnKind::Int64, ValueRef::Integer(number)) => Value::Int64(number),
        (ColumnKind::Float64, ValueRef::Real(number)) => Value::Float64(number),
        (ColumnKind::Text, ValueRef::Text(bytes)) => Value::Text(text(bytes)?),
        (ColumnKind::Binary, ValueRef::Blob(bytes)) => Value::Binary(bytes.to_vec()),
        (ColumnKind::DateTime, ValueRef::Text(bytes)) => {
            let text = text(bytes)?;
            let at = parse_date_time(&text).map_err(|error| format!("{text:?}: {error}"))?;
            if let Some(more) = more_than_instant(&text) {
                return Err(format!(
                    "{text:?} has {more}, which a move would lose; write {:?}",
                    seven_digits_text(at)
                ));
            }
            if is_key && seven_digits_text(at) != text {
                return Err(format!("{text:?} must be {:?} in a key", seven_digits_text(at)));
            }
            Value::DateTime(at)
        }
        (ColumnKind::Guid, ValueRef::Blob(bytes)) => match bytes.try_into() {
            Ok(guid) => Value::Guid(guid),
            Err(_) => return Err(format!("{} bytes are no guid", bytes.len())),
        },
        _ => return other(),
    })
}

/// What a date-time has beside the instant that is read of it.
fn more_than_instant(text: &str) -> Option<&'static str> {
    let (_, time) = text.split_once('T')?;
    if time.contains(['+', '-']) {
        return Some("a zone");
    }
    let digits = time.split_once('.').map_or("", |(_, fraction)| fraction.trim_end_matches('Z'));
    (digits.len() > FRACTION_DIGITS_MAX).then_some("more than seven digits of a second")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows that differ in the eighth digit, or by their zones alone, had one digest, and a move gave
    /// both the same text.
    #[test]
    fn a_date_time_that_says_more_than_its_instant_is_refused() {
        let column = Column { name: "at".to_owned(), kind: ColumnKind::DateTime, is_nullable: false };
        let found = |text: &str| read(&column, false, ValueRef::Text(text.as_bytes()));
        let at = parse_date_time("2026-11-28T14:05:00.1234567Z").expect("an instant");
        for text in ["2026-11-28T14:05:00.1234567Z", "2026-11-28T14:05:00.1234567"] {
            assert_eq!(found(text), Ok(Value::DateTime(at)), "{text}");
        }
        for text in ["2026-11-28", "2026-11-28T00:00Z", "2026-11-28T00:00:00.0"] {
            assert!(found(text).is_ok(), "{text}");
        }
        for (text, named) in [
            ("2026-11-28T14:05:00.12345678Z", "seven digits"),
            ("2026-11-28T14:05:00.12345670", "seven digits"),
            ("2026-11-28T16:05:00.1234567+02:00", "a zone"),
            ("2026-11-28T14:05:00-00:00", "a zone"),
        ] {
            let error = found(text).expect_err(text);
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
