//! Reading rows of a statement of SQLite.
//!
//! What always holds: a row that is read fits the table's schema, or an error names its column.

use super::value::read;
use crate::backend::error::BackendError;
use crate::schema::table::TableSchema;
use crate::sql::statement::names;
use crate::value::column_kind::ColumnKind;
use crate::value::row::{Row, RowError, RowKey};

/// What a transaction found, or why not; that it could not be asked is outside of it.
pub(super) type Outcome<T> = Result<Result<T, BackendError>, rusqlite::Error>;

pub(super) fn row_error(place: &str, error: RowError) -> BackendError {
    BackendError::Row { place: place.to_owned(), error }
}

/// Reads rows of a table.
pub(super) struct Reader<'a> {
    pub(super) place: &'a str,
    pub(super) table: &'a TableSchema,
}

/// A column, compared by bytes.
pub(super) fn compared(table: &TableSchema, index: usize) -> String {
    let name = names(table, &[index]);
    let is_text = |kind| matches!(kind, ColumnKind::Text | ColumnKind::DateTime);
    match table.columns().get(index).is_some_and(|column| is_text(column.kind)) {
        true => format!("{name} COLLATE BINARY"),
        false => name,
    }
}

impl Reader<'_> {
    pub(super) fn row(&self, found: &rusqlite::Row<'_>) -> Outcome<(RowKey, Row)> {
        let mut values = Vec::with_capacity(self.table.columns().len());
        for (index, column) in self.table.columns().iter().enumerate() {
            let is_key = self.table.row_key().contains(&index);
            match read(column, is_key, found.get_ref(index)?) {
                Ok(value) => values.push(value),
                Err(what) => {
                    let (place, table) = (self.place.to_owned(), self.table.name().to_owned());
                    return Ok(Err(BackendError::Value { place, table, column: column.name.clone(), what }));
                }
            }
        }
        let row = Row { values };
        let checked = self.table.check_row(&row).map_err(|error| row_error(self.place, error));
        Ok(checked.map(|(key, _)| (key, row)))
    }
}
