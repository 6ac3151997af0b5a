//! Writes the head of a file, and records.

use crate::files::columns::Columns;
use crate::lines::json::text_of;
use crate::lines::row::{Property, Row};
use crate::lines::token::{EdmType, Token};
use std::borrow::Cow;

/// Appends the line of names and that of types.
pub(crate) fn put_head(out: &mut Vec<u8>, columns: &Columns) {
    out.extend_from_slice(b"PartitionKey,RowKey");
    for (name, _) in columns.iter() {
        out.push(b',');
        put_text(out, name);
    }
    out.extend_from_slice(b"\nEdm.String,Edm.String");
    for (_, kind) in columns.iter() {
        out.push(b',');
        out.extend_from_slice(kind.name().as_bytes());
    }
    out.push(b'\n');
}

/// Appends the record of an entity, whose properties all have a column. An error names what no cell can hold:
/// a text with half of a surrogate pair.
pub(crate) fn put_record(out: &mut Vec<u8>, row: &Row<'_>, columns: &Columns) -> Result<(), String> {
    let mut cells: Vec<Option<Token<'_>>> = vec![None; columns.count()];
    for Property { name, value } in &row.properties {
        if value.kind == EdmType::String && text_of(value.text).is_none() {
            let (partition, row) = (&row.partition_key, &row.row_key);
            return Err(format!(
                "{partition:?} {row:?}: property {name}: it has an escape that is no character"
            ));
        }
        if let Some(place) = columns.place(name, value.kind) {
            cells[place] = Some(*value);
        }
    }
    put_text(out, &row.partition_key);
    out.push(b',');
    put_text(out, &row.row_key);
    for cell in cells {
        out.push(b',');
        match cell {
            None => {}
            Some(token) if token.kind == EdmType::String => {
                put_text(out, &text_of(token.text).unwrap_or(Cow::Borrowed("")));
            }
            Some(token) => put_text(out, token.inner()),
        }
    }
    out.push(b'\n');
    Ok(())
}

/// A text, in quotes if it needs them. Blanks at its ends do for programs that trim cells.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let is_special = |byte: u8| matches!(byte, b',' | b'"' | b'\r' | b'\n');
    let needs_quotes = text.is_empty() || text.trim() != text || text.bytes().any(is_special);
    if !needs_quotes {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
