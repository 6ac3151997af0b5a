//! A row as an entity of a table.
//!
//! ```text
//! PartitionKey    the columns of the shard's key; of a reference table `reference`
//! RowKey          the other columns of the row's key
//! a property      each other column, under its name: Edm.Boolean, Int32, Int64, Double, String, Binary,
//!                 DateTime or Guid; a NULL has none
//! ```
//!
//! So all rows of a shard key are one partition, which is what a client's signature is for and what changes
//! as one group; the rows of several keys are in their order.
//!
//! What always holds: an entity that was read gives the row that it was written of; one with a property that
//! is no column is an error, because the property would be lost in a move.

use super::key_text::{key_text, read_key};
use crate::schema::table::TableSchema;
use crate::value::column_kind::ColumnKind;
use crate::value::row::{Row, RowError, RowKey};
use crate::value::value::Value;
use bytes::Bytes;
use shard_map::KeyValue;
use storage_client::{Entity, Value as Property};

/// The partition of a reference table's rows.
const REFERENCE: &str = "reference";
/// Characters of a PartitionKey or RowKey, at most: services take 1 KiB of UTF-16.
pub(crate) const KEY_CHARS_MAX: usize = 512;
/// Properties of each entity that are no columns.
const SYSTEM: [&str; 4] = ["PartitionKey", "RowKey", "Timestamp", "odata.etag"];

/// The keys of a row's entity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntityKey {
    /// Its PartitionKey.
    pub partition_key: String,
    /// Its RowKey.
    pub row_key: String,
}

/// Why there is no entity of a row, or no row of an entity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntityError {
    /// The row is none of its table.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A column or property that the other side can't have.
    #[error("column `{column}` of table `{table}`: {what}")]
    Value {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What is wrong with it.
        what: String,
    },
}

impl EntityError {
    fn value(table: &TableSchema, column: &str, what: impl Into<String>) -> Self {
        EntityError::Value { table: table.name().to_owned(), column: column.to_owned(), what: what.into() }
    }
}

impl EntityKey {
    /// The keys of the entity of a row's key.
    pub fn of(table: &TableSchema, key: &RowKey) -> Result<Self, EntityError> {
        let (shard_key, rest) = key.values.split_at_checked(table.shard_key().len()).unwrap_or_default();
        let key = EntityKey { partition_key: partition_of(table, shard_key), row_key: key_text(rest) };
        for (name, text) in [("PartitionKey", &key.partition_key), ("RowKey", &key.row_key)] {
            if text.len() > KEY_CHARS_MAX {
                let what = format!("it has {} characters, and a service takes {KEY_CHARS_MAX}", text.len());
                return Err(EntityError::value(table, name, what));
            }
        }
        Ok(key)
    }
}

/// The PartitionKey of the first columns of a shard key, which is a bound of those of all keys behind it.
pub(super) fn partition_of(table: &TableSchema, shard_key: &[KeyValue]) -> String {
    if table.is_sharded() { key_text(shard_key) } else { REFERENCE.to_owned() }
}

/// The entity of a row.
pub fn entity_of_row(table: &TableSchema, row: &Row) -> Result<Entity, EntityError> {
    let (key, _) = table.check_row(row)?;
    let EntityKey { partition_key, row_key } = EntityKey::of(table, &key)?;
    let mut entity = Entity::new(partition_key, row_key);
    for (index, (column, value)) in table.columns().iter().zip(&row.values).enumerate() {
        if table.row_key().contains(&index) {
            continue;
        }
        if SYSTEM.contains(&column.name.as_str()) {
            return Err(EntityError::value(table, &column.name, "entities have a property of that name"));
        }
        if let Some(property) = property_of(value) {
            entity.properties.push((column.name.clone(), property));
        }
    }
    Ok(entity)
}

/// The row of an entity, and its key.
pub fn row_of_entity(table: &TableSchema, entity: &Entity) -> Result<(RowKey, Row), EntityError> {
    let key = row_key_of(table, entity)?;
    let mut values: Vec<Value> = vec![Value::Null; table.columns().len()];
    for (index, value) in table.row_key().iter().zip(&key.values) {
        if let Some(place) = values.get_mut(*index) {
            *place = value.clone().into();
        }
    }
    for (name, property) in &entity.properties {
        let index = table.columns().iter().position(|column| column.name == *name);
        let index = index.filter(|index| !table.row_key().contains(index));
        let Some(place) = index.and_then(|index| values.get_mut(index)) else {
            let shown = format!("{} {}", entity.partition_key, entity.row_key);
            let what = format!("the entity {shown} has such a property, which is not declared");
            return Err(EntityError::value(table, name, what));
        };
        *place = value_of(property);
    }
    let row = Row { values };
    // A property of another type, or one that is missing where there is no NULL.
    table.check_row(&row)?;
    Ok((key, row))
}

/// The key of an entity's row.
pub(super) fn row_key_of(table: &TableSchema, entity: &Entity) -> Result<RowKey, EntityError> {
    let (shard, rest) =
        table.row_key_type().kinds().split_at_checked(table.shard_key().len()).unwrap_or_default();
    let shard_key = match table.is_sharded() {
        true => read_key(shard, &entity.partition_key),
        false => (entity.partition_key == REFERENCE).then(Vec::new),
    };
    let unread = |column: &str, text: &str| {
        EntityError::value(table, column, format!("{text:?} is no key of a row: {}", table.row_key_type()))
    };
    let mut values = shard_key.ok_or_else(|| unread("PartitionKey", &entity.partition_key))?;
    values.extend(read_key(rest, &entity.row_key).ok_or_else(|| unread("RowKey", &entity.row_key))?);
    Ok(RowKey { values })
}

fn property_of(value: &Value) -> Option<Property> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => Property::Boolean(*value),
        Value::Int32(value) => Property::Int32(*value),
        Value::Int64(value) => Property::Int64(*value),
        Value::Float64(value) => Property::Double(*value),
        Value::Text(text) => Property::String(text.clone()),
        Value::Binary(bytes) => Property::Binary(Bytes::copy_from_slice(bytes)),
        Value::DateTime(at) => Property::DateTime(*at),
        Value::Guid(guid) => Property::Guid(*guid),
    })
}

fn value_of(property: &Property) -> Value {
    match property {
        Property::Boolean(value) => Value::Bool(*value),
        Property::Int32(value) => Value::Int32(*value),
        Property::Int64(value) => Value::Int64(*value),
        Property::Double(value) => Value::Float64(*value),
        Property::String(text) => Value::Text(text.clone()),
        Property::Binary(bytes) => Value::Binary(bytes.to_vec()),
        Property::DateTime(at) => Value::DateTime(*at),
        Property::Guid(guid) => Value::Guid(*guid),
    }
}

/// Kinds that entities can have: all.
pub(super) fn kinds_of_properties() -> Vec<ColumnKind> {
    ColumnKind::ALL.to_vec()
}
