//! How far a copy is, as it is stored: a mover that goes on after a kill begins there.
//!
//! What always holds: rows before a position are copied. It may be behind what was copied, never ahead.

use serde::{Deserialize, Serialize};
use shard_backend::{RowKey, TableSchema};
use shard_map::KeyValue;

/// How far a copy is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The format, see `state.rs`.
    pub(crate) format: u64,
    /// The table; those before it in the schema's order are copied.
    pub(crate) table: String,
    /// The last key that was copied of it, as texts; none: nothing of it yet.
    pub(crate) after: Option<Vec<String>>,
    /// Rows that were copied, of all tables.
    pub(crate) rows: u64,
}

/// A row's key as texts.
pub(crate) fn key_texts(key: &RowKey) -> Vec<String> {
    key.values.iter().map(KeyValue::text).collect()
}

/// A row's key out of its texts, if they are one of the table.
pub(crate) fn read_key(table: &TableSchema, texts: &[String]) -> Option<RowKey> {
    let kinds = table.row_key_type().kinds();
    if kinds.len() != texts.len() {
        return None;
    }
    let values = kinds.iter().zip(texts).map(|(kind, text)| KeyValue::parse(*kind, text).ok());
    Some(RowKey { values: values.collect::<Option<_>>()? })
}
