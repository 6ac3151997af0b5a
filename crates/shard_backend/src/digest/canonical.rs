//! The canonical encoding of a row: the same bytes on every backend, for other languages, too.
//!
//! ```text
//! row       head, then a value for each of its columns
//! head      01                      version
//!           bytes                   the table's name, in UTF-8
//!           count                   of columns, and for each: bytes (its name), its kind's tag
//!                                   first those of the row key in its order, then the others in the order of
//!                                   their names' bytes
//!           count                   of columns of the row key
//! value     00                      NULL
//!           01 byte                 bool: 00, 01
//!           02 4 bytes              int32, big-endian, two's complement
//!           03 8 bytes              int64, the same
//!           04 8 bytes              float64: its bits, big-endian; every NaN is 7FF8000000000000, -0 is 0
//!           05 bytes                text: its UTF-8 as it is, not normalized
//!           06 bytes                binary
//!           07 8 bytes              date-time: units of 100 ns since 1601-01-01T00:00:00Z, big-endian
//!           08 16 bytes             guid, in the order of its text
//! count     4 bytes, big-endian
//! bytes     count, and so many bytes
//! ```
//!
//! What always holds: two rows have the same bytes exactly if their tables (names, columns, keys) and all
//! values are equal, because each part shows where it ends.

use crate::schema::table::TableSchema;
use crate::value::column_kind::ColumnKind;
use crate::value::row::Row;
use crate::value::value::{Value, canonical_bits};

/// The version of the encoding.
const VERSION: u8 = 1;
const NULL: u8 = 0;

fn tag(kind: ColumnKind) -> u8 {
    match kind {
        ColumnKind::Bool => 1,
        ColumnKind::Int32 => 2,
        ColumnKind::Int64 => 3,
        ColumnKind::Float64 => 4,
        ColumnKind::Text => 5,
        ColumnKind::Binary => 6,
        ColumnKind::DateTime => 7,
        ColumnKind::Guid => 8,
    }
}

/// Columns by their place: those of the row key, then the others.
pub(super) fn column_order(table: &TableSchema) -> Vec<usize> {
    let key = table.row_key();
    let others = (0..table.columns().len()).filter(|index| !key.contains(index));
    key.iter().copied().chain(others).collect()
}

/// What all rows of a table begin with.
pub(super) fn push_head(table: &TableSchema, order: &[usize], out: &mut Vec<u8>) {
    out.push(VERSION);
    push_bytes(table.name().as_bytes(), out);
    push_count(order.len(), out);
    for column in order.iter().filter_map(|index| table.columns().get(*index)) {
        push_bytes(column.name.as_bytes(), out);
        out.push(tag(column.kind));
    }
    push_count(table.row_key().len(), out);
}

/// The values of a row, which was checked, in that order.
pub(super) fn push_values(row: &Row, order: &[usize], out: &mut Vec<u8>) {
    for value in order.iter().filter_map(|index| row.values.get(*index)) {
        push_value(value, out);
    }
}

fn push_value(value: &Value, out: &mut Vec<u8>) {
    out.push(value.kind().map_or(NULL, tag));
    match value {
        Value::Null => {}
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::Int32(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Int64(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Float64(value) => out.extend_from_slice(&canonical_bits(*value).to_be_bytes()),
        Value::Text(text) => push_bytes(text.as_bytes(), out),
        Value::Binary(bytes) => push_bytes(bytes, out),
        Value::DateTime(at) => out.extend_from_slice(&at.0.to_be_bytes()),
        Value::Guid(guid) => out.extend_from_slice(guid),
    }
}

fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    push_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Counts are far below 2^32: names, columns and rows have bounds.
fn push_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

impl TableSchema {
    /// The canonical encoding of a row of the table, which [`TableSchema::check_row`] let pass.
    pub fn canonical_row(&self, row: &Row) -> Vec<u8> {
        let order = column_order(self);
        let mut out = Vec::new();
        push_head(self, &order, &mut out);
        push_values(row, &order, &mut out);
        out
    }
}
