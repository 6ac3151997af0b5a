//! The texts of columns and parameters in Postgres.

use super::value::type_text;
use crate::schema::table::TableSchema;
use crate::sql::statement::names;
use crate::value::column_kind::ColumnKind;

fn kind(table: &TableSchema, index: usize) -> Option<ColumnKind> {
    table.columns().get(index).map(|column| column.kind)
}

/// A column, compared by bytes.
pub(super) fn compared(table: &TableSchema, index: usize) -> String {
    let name = names(table, &[index]);
    if kind(table, index) == Some(ColumnKind::Text) { format!("{name} COLLATE \"C\"") } else { name }
}

/// A parameter for a column.
pub(super) fn parameter(table: &TableSchema, number: usize, index: usize) -> String {
    format!("${number}::{}", kind(table, index).map_or("text", type_text))
}
