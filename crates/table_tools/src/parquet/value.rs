//! The values of a column while it is written, and how a value is read.

use super::layout::GUID_SIZE_BYTES;
use crate::lines::json::{put_text, text_of};
use crate::lines::token::{EdmType, Token};
use base::Ticks;
use base::clock::{SECONDS_1601_TO_1970, TICKS_PER_SECOND};
use base::date_time::{TICKS_MAX, format_date_time, parse_date_time};
use base::guid::{format_guid, parse_guid};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int32Type,
    Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;

const SECONDS_PER_DAY: i128 = 86_400;

/// Values that are there, one after the other.
pub(super) enum Values {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    /// Times, too.
    Int64(Vec<i64>),
    Double(Vec<f64>),
    /// Texts and bytes.
    Bytes(Vec<ByteArray>),
    Guid(Vec<FixedLenByteArray>),
}

impl Values {
    /// None yet.
    pub(super) fn of(kind: EdmType) -> Self {
        match kind {
            EdmType::Boolean => Values::Boolean(Vec::new()),
            EdmType::Int32 => Values::Int32(Vec::new()),
            EdmType::Int64 | EdmType::DateTime => Values::Int64(Vec::new()),
            EdmType::Double => Values::Double(Vec::new()),
            EdmType::String | EdmType::Binary => Values::Bytes(Vec::new()),
            EdmType::Guid => Values::Guid(Vec::new()),
        }
    }

    /// Takes a value of the column's type; whether it is one.
    pub(super) fn push(&mut self, token: &Token<'_>) -> bool {
        let inner = token.inner();
        match (self, token.kind) {
            (Values::Boolean(values), _) => push(values, inner.parse().ok()),
            (Values::Int32(values), _) => push(values, inner.parse().ok()),
            (Values::Int64(values), EdmType::DateTime) => {
                push(values, parse_date_time(inner).ok().map(|ticks| ticks.0 as i64))
            }
            (Values::Int64(values), _) => push(values, inner.parse().ok()),
            // "NaN" and the infinities, too.
            (Values::Double(values), _) => push(values, inner.parse().ok()),
            (Values::Bytes(values), EdmType::Binary) => {
                push(values, STANDARD.decode(inner).ok().map(ByteArray::from))
            }
            (Values::Bytes(values), _) => {
                push(values, text_of(token.text).map(|text| ByteArray::from(text.into_owned().into_bytes())))
            }
            (Values::Guid(values), _) => {
                push(values, parse_guid(inner).map(|guid| FixedLenByteArray::from(guid.to_vec())))
            }
        }
    }

    /// Writes them; `levels` has 1 for each row with a value, 0 for each other one.
    pub(super) fn write(
        &self,
        out: &mut SerializedColumnWriter<'_>,
        levels: &[i16],
    ) -> Result<(), ParquetError> {
        match self {
            Values::Boolean(values) => out.typed::<BoolType>().write_batch(values, Some(levels), None),
            Values::Int32(values) => out.typed::<Int32Type>().write_batch(values, Some(levels), None),
            Values::Int64(values) => out.typed::<Int64Type>().write_batch(values, Some(levels), None),
            Values::Double(values) => out.typed::<DoubleType>().write_batch(values, Some(levels), None),
            Values::Bytes(values) => out.typed::<ByteArrayType>().write_batch(values, Some(levels), None),
            Values::Guid(values) => {
                out.typed::<FixedLenByteArrayType>().write_batch(values, Some(levels), None)
            }
        }
        .map(drop)
    }
}

fn push<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    let is_one = value.is_some();
    values.extend(value);
    is_one
}

/// A value as Parquet has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored<'a> {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Bytes(&'a [u8]),
}

/// What the values of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The value of that type.
    Plain(EdmType),
    /// Days since 1970.
    Days,
    /// So many of a second, since 1970.
    Timestamp {
        /// 1000 of milliseconds.
        per_second: i64,
    },
}

impl Meaning {
    /// The type of the property.
    pub(super) fn kind(self) -> EdmType {
        match self {
            Meaning::Plain(kind) => kind,
            Meaning::Days | Meaning::Timestamp { .. } => EdmType::DateTime,
        }
    }

    /// Appends a value's JSON; none if it is no value of the type. It never needs an annotation that
    /// [`needs_annotation`] does not tell.
    pub(super) fn put(self, out: &mut Vec<u8>, value: Stored<'_>) -> Option<()> {
        let per_second = i128::from(TICKS_PER_SECOND);
        match (self, value) {
            (Meaning::Plain(EdmType::Boolean), Stored::Boolean(value)) => put_plain(out, value),
            (Meaning::Plain(EdmType::Int32), Stored::Integer(value)) => put_plain(out, value),
            (Meaning::Plain(EdmType::Int64), Stored::Integer(value)) => put_quoted(out, value),
            (Meaning::Plain(EdmType::Double), Stored::Float(value)) => put_double(out, value),
            (Meaning::Plain(EdmType::DateTime), Stored::Integer(ticks)) => put_time(out, i128::from(ticks))?,
            (Meaning::Days, Stored::Integer(days)) => {
                put_time(out, since_1601(i128::from(days) * SECONDS_PER_DAY * per_second))?;
            }
            (Meaning::Timestamp { per_second: units }, Stored::Integer(value)) => {
                // What is shorter than a tick is cut off.
                let ticks = (i128::from(value) * per_second).div_euclid(i128::from(units));
                put_time(out, since_1601(ticks))?;
            }
            (Meaning::Plain(EdmType::String), Stored::Bytes(bytes)) => {
                put_text(out, simdutf8::basic::from_utf8(bytes).ok()?);
            }
            (Meaning::Plain(EdmType::Guid), Stored::Bytes(bytes)) => {
                let guid: &[u8; GUID_SIZE_BYTES] = bytes.try_into().ok()?;
                out.push(b'"');
                format_guid(guid, out);
                out.push(b'"');
            }
            (Meaning::Plain(EdmType::Binary), Stored::Bytes(bytes)) => {
                put_quoted(out, STANDARD.encode(bytes))
            }
            _ => return None,
        }
        Some(())
    }
}

/// Whether a value's type is to be said beside it.
pub(super) fn needs_annotation(kind: EdmType, value: Stored<'_>) -> bool {
    match (kind, value) {
        (EdmType::Double, Stored::Float(value)) => !value.is_finite(),
        (EdmType::String | EdmType::Boolean | EdmType::Int32, _) => false,
        _ => true,
    }
}

fn put_plain(out: &mut Vec<u8>, value: impl ToString) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// Of what has no characters that JSON escapes.
fn put_quoted(out: &mut Vec<u8>, value: impl ToString) {
    out.push(b'"');
    put_plain(out, value);
    out.push(b'"');
}

fn put_double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
    } else {
        // It always has a point or an exponent, and is read back as the same number.
        put_plain(out, format!("{value:?}"));
    }
}

fn since_1601(ticks: i128) -> i128 {
    ticks + i128::from(SECONDS_1601_TO_1970 * TICKS_PER_SECOND)
}

fn put_time(out: &mut Vec<u8>, ticks: i128) -> Option<()> {
    let ticks = u64::try_from(ticks).ok().map(Ticks).filter(|ticks| *ticks <= TICKS_MAX)?;
    out.push(b'"');
    format_date_time(ticks, out);
    out.push(b'"');
    Some(())
}
