//! Rows and their keys.
//!
//! What always holds: a row that [`TableSchema::check_row`] let pass has a value of the declared kind, or an
//! allowed NULL, for each column, and a key that `shard_map` can encode; keys of a table are ordered as their
//! encodings are.

use super::value::Value;
use crate::limits::ROW_BYTES_MAX;
use crate::schema::table::TableSchema;
use base::date_time::TICKS_MAX;
use shard_map::{EncodedKey, KeyError, KeyValue};
use std::fmt;

/// A row: a value for each column, in the order of [`TableSchema::columns`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The values.
    pub values: Vec<Value>,
}

/// A row's key: the values of [`TableSchema::row_key`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// The values: first those of the shard's key, if the table is sharded.
    pub values: Vec<KeyValue>,
}

/// Why a row is none of its table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Too few or too many values.
    #[error("table `{table}` has {expected} columns, and the row {found} values")]
    Count {
        /// The table.
        table: String,
        /// Its columns.
        expected: usize,
        /// The row's values.
        found: usize,
    },
    /// A value of another kind, or a NULL where there is to be none.
    #[error("column `{column}` of table `{table}` is {expected}, and the value {found}")]
    Kind {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What the schema declares.
        expected: &'static str,
        /// What the value is.
        found: String,
    },
    /// The key's values can't be encoded.
    #[error("table `{table}`: {error}")]
    Key {
        /// The table.
        table: String,
        /// Why not.
        error: KeyError,
    },
    /// Too long.
    #[error("a row of table `{table}` has {size_bytes} bytes, and at most {ROW_BYTES_MAX} can be moved")]
    Size {
        /// The table.
        table: String,
        /// The row's size.
        size_bytes: usize,
    },
}

impl Row {
    /// Its bytes in memory, as bounds of batches count them.
    pub fn size_bytes(&self) -> usize {
        self.values.iter().map(Value::size_bytes).sum()
    }
}

impl TableSchema {
    /// Whether it is a row of the table; gives its key and the key's encoding, in whose order rows are.
    pub fn check_row(&self, row: &Row) -> Result<(RowKey, EncodedKey), RowError> {
        let table = || self.name().to_owned();
        if row.values.len() != self.columns().len() {
            let (expected, found) = (self.columns().len(), row.values.len());
            return Err(RowError::Count { table: table(), expected, found });
        }
        for (column, value) in self.columns().iter().zip(&row.values) {
            let fits = match value {
                Value::Null => column.is_nullable,
                Value::DateTime(at) if *at > TICKS_MAX => false,
                value => value.kind() == Some(column.kind),
            };
            if !fits {
                let found = match value.kind() {
                    Some(kind) => format!("is {kind}: {value}"),
                    None => "is NULL".to_owned(),
                };
                let (column, expected) = (column.name.clone(), column.kind.name());
                return Err(RowError::Kind { table: table(), column, expected, found });
            }
        }
        let size_bytes = row.size_bytes();
        if size_bytes > ROW_BYTES_MAX {
            return Err(RowError::Size { table: table(), size_bytes });
        }
        // Columns of the key are not NULL and of a key's kind: the schema sees to it, and the check above.
        let values = self.row_key().iter().filter_map(|index| row.values.get(*index)?.key_value());
        let key = RowKey { values: values.collect() };
        let encoded = self.encode_key(&key)?;
        Ok((key, encoded))
    }

    /// The encoding of a row's key.
    pub fn encode_key(&self, key: &RowKey) -> Result<EncodedKey, RowError> {
        let encoded = self.row_key_type().encode(&key.values);
        encoded.map_err(|error| RowError::Key { table: self.name().to_owned(), error })
    }
}

/// As messages show it: `17`, or `(17, "a")`.
impl fmt::Display for RowKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.values.as_slice() {
            [one] => write!(out, "{one}"),
            many => {
                let texts: Vec<String> = many.iter().map(ToString::to_string).collect();
                write!(out, "({})", texts.join(", "))
            }
        }
    }
}
