//! How many rows of a shardlet a SQLite database has.
//!
//! What always holds: one statement counts, so at one instant; it reads no column but those of the shard's
//! key, which the primary key's index has first; a row a shard key comes at most, and one if all rows within
//! the shardlet's bounds are its own.

use super::reader::{Outcome, Reader, compared};
use super::value::read;
use crate::backend::error::BackendError;
use crate::backend::shardlet::Shardlet;
use crate::schema::table::TableSchema;
use crate::sql::statement::{names, quoted, where_of};
use crate::sql::window::Condition;
use rusqlite::types::Value as Sql;
use rusqlite::{Row, Statement, params_from_iter};
use shard_map::KeyValue;

/// Counts all rows of a window, or those of each shard key.
pub(super) fn select_count(table: &TableSchema, conditions: &[Condition], is_whole: bool) -> String {
    let filter =
        where_of(table, conditions, |index| compared(table, index), |number, _| format!("?{number}"));
    let name = quoted(table.name());
    if is_whole {
        return format!("SELECT count(*) FROM {name}{filter}");
    }
    let columns = names(table, table.shard_key());
    let by = table.shard_key().iter().map(|index| compared(table, *index)).collect::<Vec<_>>().join(", ");
    format!("SELECT count(*), {columns} FROM {name}{filter} GROUP BY {by}")
}

/// Adds up the counts of the shardlet's keys.
pub(super) fn count_rows(
    reader: &Reader<'_>,
    mut statement: Statement<'_>,
    values: Vec<Sql>,
    shardlet: &Shardlet,
) -> Outcome<u64> {
    let mut rows = statement.query(params_from_iter(values))?;
    let mut count = 0;
    while let Some(found) = rows.next()? {
        let counted = found.get::<_, i64>(0)?.cast_unsigned();
        if shardlet.is_whole() {
            return Ok(Ok(counted));
        }
        match shard_key(reader, found)? {
            Ok(key) if shardlet.holds(&key) => count += counted,
            Ok(_) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(count))
}

/// The shard key of a counted row.
fn shard_key(reader: &Reader<'_>, found: &Row<'_>) -> Outcome<Vec<KeyValue>> {
    let mut key = Vec::with_capacity(reader.table.shard_key().len());
    for (at, index) in reader.table.shard_key().iter().enumerate() {
        let Some(column) = reader.table.columns().get(*index) else { continue };
        let value = read(column, true, found.get_ref(at + 1)?);
        let value =
            value.and_then(|value| value.key_value().ok_or_else(|| format!("{value} is no value of a key")));
        match value {
            Ok(value) => key.push(value),
            Err(what) => {
                let (place, table) = (reader.place.to_owned(), reader.table.name().to_owned());
                return Ok(Err(BackendError::Value { place, table, column: column.name.clone(), what }));
            }
        }
    }
    Ok(Ok(key))
}
