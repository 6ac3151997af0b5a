//! Values in Postgres.
//!
//! | kind | type | value |
//! |---|---|---|
//! | bool, int32, int64, float64 | `boolean`, `integer`, `bigint`, `double precision` | as it is |
//! | text | `text`, `character varying` | without U+0000, which Postgres has not |
//! | binary, guid | `bytea`, `uuid` | the bytes |
//! | date-time | `timestamp with time zone` | whole microseconds |
//!
//! What always holds: keys are compared as their encodings are, texts by `COLLATE "C"`.

use crate::value::column_kind::ColumnKind;
use crate::value::value::Value;
use base::Ticks;
use base::date_time::TICKS_MAX;
use bytes::BytesMut;
use shard_map::KeyValue;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// 2000-01-01T00:00:00Z, from which Postgres counts microseconds.
const ZERO_AT: Ticks = Ticks(125_911_584_000_000_000);
const TICKS_PER_US: u64 = 10;

/// The type of a kind, in parameters.
pub(super) fn type_text(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Bool => "bool",
        ColumnKind::Int32 => "int4",
        ColumnKind::Int64 => "int8",
        ColumnKind::Float64 => "float8",
        ColumnKind::Text => "text",
        ColumnKind::Binary => "bytea",
        ColumnKind::DateTime => "timestamptz",
        ColumnKind::Guid => "uuid",
    }
}

/// The kind that a type of columns holds; none if it is another.
pub(super) fn kind_of(type_name: &str) -> Option<ColumnKind> {
    match type_name {
        "varchar" => Some(ColumnKind::Text),
        name => ColumnKind::ALL.into_iter().find(|kind| type_text(*kind) == name),
    }
}

/// Whether Postgres can't store a value.
pub(super) fn check(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) if text.contains('\0') => Err("Postgres can't store a text with U+0000".to_owned()),
        Value::DateTime(at) if at.0 % TICKS_PER_US != 0 => {
            Err(format!("Postgres stores whole microseconds, and {value} is none"))
        }
        _ => Ok(()),
    }
}

/// The last value of a key that Postgres has before one that it can't store.
pub(super) fn floor(value: &KeyValue) -> Option<KeyValue> {
    match value {
        KeyValue::Text(text) => Some(KeyValue::Text(text.split_once('\0')?.0.to_owned())),
        KeyValue::DateTime(at) if at.0 % TICKS_PER_US != 0 => {
            Some(KeyValue::DateTime(Ticks(at.0 - at.0 % TICKS_PER_US)))
        }
        _ => None,
    }
}

/// A value that is stored or read.
#[derive(Debug)]
pub(super) struct Stored(pub(super) Value);

impl ToSql for Stored {
    fn to_sql(&self, to: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Bool(value) => value.to_sql(to, out),
            Value::Int32(value) => value.to_sql(to, out),
            Value::Int64(value) => value.to_sql(to, out),
            Value::Float64(value) => value.to_sql(to, out),
            Value::Text(text) => text.to_sql(to, out),
            Value::Binary(bytes) => bytes.to_sql(to, out),
            // Not after `TICKS_MAX`: the row was checked.
            Value::DateTime(at) => {
                let ticks = at.0.cast_signed() - ZERO_AT.0.cast_signed();
                out.extend_from_slice(&ticks.div_euclid(TICKS_PER_US.cast_signed()).to_be_bytes());
                Ok(IsNull::No)
            }
            Value::Guid(guid) => {
                out.extend_from_slice(guid);
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(from: &Type) -> bool {
        kind_of(from.name()).is_some()
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Stored {
    fn from_sql(from: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let kind = kind_of(from.name()).ok_or("a value of another type")?;
        Ok(Stored(match kind {
            ColumnKind::Bool => Value::Bool(bool::from_sql(from, raw)?),
            ColumnKind::Int32 => Value::Int32(i32::from_sql(from, raw)?),
            ColumnKind::Int64 => Value::Int64(i64::from_sql(from, raw)?),
            ColumnKind::Float64 => Value::Float64(f64::from_sql(from, raw)?),
            ColumnKind::Text => Value::Text(String::from_sql(from, raw)?),
            ColumnKind::Binary => Value::Binary(raw.to_vec()),
            ColumnKind::DateTime => Value::DateTime(instant(i64::from_be_bytes(raw.try_into()?))?),
            ColumnKind::Guid => Value::Guid(raw.try_into()?),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Stored(Value::Null))
    }

    fn accepts(from: &Type) -> bool {
        kind_of(from.name()).is_some()
    }
}

/// The instant so many microseconds after 2000.
fn instant(us: i64) -> Result<Ticks, &'static str> {
    let ticks = us
        .checked_mul(TICKS_PER_US.cast_signed())
        .and_then(|ticks| ticks.checked_add(ZERO_AT.0.cast_signed()))
        .and_then(|ticks| u64::try_from(ticks).ok())
        .filter(|ticks| *ticks <= TICKS_MAX.0);
    ticks.map(Ticks).ok_or("an instant that is not from 1601 to 9999")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::date_time::parse_date_time;

    #[test]
    fn instants_are_counted_from_2000() {
        assert_eq!(parse_date_time("2000-01-01"), Ok(ZERO_AT));
        for (us, expected) in [
            (0, Some("2000-01-01T00:00:00Z")),
            (-12_591_158_400_000_000, Some("1601-01-01T00:00:00Z")),
            (-12_591_158_400_000_001, None),
            (252_455_615_999_999_999, Some("9999-12-31T23:59:59.999999Z")),
            (252_455_616_000_000_000, None),
            (i64::MAX, None),
            (i64::MIN, None),
        ] {
            let expected = expected.map(|text| parse_date_time(text).expect("an instant"));
            assert_eq!(instant(us).ok(), expected, "{us}");
        }
    }
}
