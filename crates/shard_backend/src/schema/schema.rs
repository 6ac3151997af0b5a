//! A declared schema: the tables of all shards of a map.
//!
//! What always holds: names are unique, whatever their case; all sharded tables have shard keys of one type.

use super::table::TableSchema;
use crate::value::column_kind::ColumnKind;
use shard_map::{KeyType, Name, ShardMap};
use std::collections::BTreeMap;

/// A declared schema. [`Schema::parse`] reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    pub(super) map: Name,
    pub(super) tables: BTreeMap<String, TableSchema>,
}

/// A schema that does not fit to its map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMapError {
    /// It is of another map.
    #[error("the schema is of the map `{declared}`, and this is the map `{found}`")]
    OtherMap {
        /// The schema's map.
        declared: Name,
        /// The map that was given.
        found: Name,
    },
    /// A table's key columns are not those of the map.
    #[error("table `{table}` has the shard key {declared}, and keys of the map `{map}` are {expected}")]
    OtherKey {
        /// The table.
        table: String,
        /// Its shard key's kinds.
        declared: String,
        /// The map.
        map: Name,
        /// The map's.
        expected: KeyType,
    },
}

impl Schema {
    /// The map that spreads the sharded tables.
    pub fn map(&self) -> &Name {
        &self.map
    }

    /// All tables, in the order of their names' bytes.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = &TableSchema> {
        self.tables.values()
    }

    /// A table.
    pub fn table(&self, name: &str) -> Option<&TableSchema> {
        self.tables.get(name)
    }

    /// Whether it is the schema of this map: the same name, and shard keys of the map's type.
    pub fn check_map(&self, map: &ShardMap) -> Result<(), SchemaMapError> {
        if self.map != *map.name() {
            return Err(SchemaMapError::OtherMap { declared: self.map.clone(), found: map.name().clone() });
        }
        for table in self.tables().filter(|table| table.is_sharded()) {
            let kinds: Vec<ColumnKind> = table
                .shard_key()
                .iter()
                .filter_map(|index| Some(table.columns().get(*index)?.kind))
                .collect();
            let is_same = kinds.iter().map(|kind| kind.key_kind()).eq(map
                .key_type()
                .kinds()
                .iter()
                .map(|kind| Some(*kind)));
            if !is_same {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                return Err(SchemaMapError::OtherKey {
                    table: table.name().to_owned(),
                    declared: format!("({})", names.join(", ")),
                    map: map.name().clone(),
                    expected: map.key_type().clone(),
                });
            }
        }
        Ok(())
    }
}
