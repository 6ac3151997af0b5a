//! A declared table.
//!
//! What always holds: columns are in the order of their names' bytes; the row key has at least one column,
//! begins with the shard's key, and its columns are of a key's kind and not NULL; it identifies a row on
//! every shard, because it holds the shard's key.

use crate::value::column_kind::ColumnKind;
use shard_map::KeyType;

/// A declared column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, as the database has it.
    pub name: String,
    /// Its kind.
    pub kind: ColumnKind,
    /// Whether it may be NULL.
    pub is_nullable: bool,
}

/// A declared table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Columns of the row key, by their place in `columns`.
    pub(super) row_key: Vec<usize>,
    /// How many of them are the shard's key; 0: a reference table.
    pub(super) shard_key_count: usize,
    /// The primary key as it was declared.
    pub(super) primary_key: Vec<usize>,
    pub(super) row_key_type: KeyType,
}

impl TableSchema {
    /// Its name, as the database has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns, in the order of their names' bytes.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns that identify a row and in whose order rows are scanned, by their place in
    /// [`TableSchema::columns`]: those of the shard's key, then the others of the primary key.
    pub fn row_key(&self) -> &[usize] {
        &self.row_key
    }

    /// The columns of the shard's key, in the order of the map's key; none of a reference table.
    pub fn shard_key(&self) -> &[usize] {
        &self.row_key[..self.shard_key_count]
    }

    /// The primary key in its declared order.
    pub fn primary_key(&self) -> &[usize] {
        &self.primary_key
    }

    /// The type of row keys.
    pub fn row_key_type(&self) -> &KeyType {
        &self.row_key_type
    }

    /// Whether its rows are spread over shards; else each shard has all of them.
    pub fn is_sharded(&self) -> bool {
        self.shard_key_count > 0
    }
}
