//! How many rows of a shardlet a Postgres database has.
//!
//! What always holds: one statement counts, so at one instant; it reads no column but those of the shard's
//! key, which an index has; a row a shard key comes at most, and none if all rows within the shardlet's
//! bounds are its own.

use super::scan::Outcome;
use super::statement::{compared, parameter};
use super::value::Stored;
use crate::backend::error::BackendError;
use crate::backend::shardlet::Shardlet;
use crate::limits::BATCH_LOOKED_AT_ROWS_MAX;
use crate::schema::table::TableSchema;
use crate::sql::statement::{quoted, where_of};
use crate::sql::window::Condition;
use futures_util::TryStreamExt;
use shard_map::KeyValue;
use std::pin::pin;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};

/// A count of a shardlet's rows.
pub(super) struct Count {
    pub(super) place: String,
    pub(super) table: TableSchema,
    pub(super) conditions: Vec<Condition>,
    pub(super) shardlet: Shardlet,
}

impl Count {
    pub(super) async fn run(self, transaction: &Transaction<'_>) -> Outcome<u64> {
        let values = self.conditions.iter().flat_map(|condition| condition.values.iter().cloned());
        let values: Vec<Stored> = values.map(|value| Stored(value.into())).collect();
        let parameters: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        if self.shardlet.is_whole() {
            let counted = transaction.query_one(&self.sql(""), &parameters).await?;
            return Ok(Ok(counted.try_get::<_, i64>(0)?.cast_unsigned()));
        }
        let columns = self.table.shard_key().iter().map(|index| compared(&self.table, *index));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let portal = transaction.bind(&self.sql(&columns), &parameters).await?;
        let (mut count, chunk_rows) = (0_u64, BATCH_LOOKED_AT_ROWS_MAX);
        loop {
            let asked = i32::try_from(chunk_rows).unwrap_or(i32::MAX);
            let mut found = pin!(transaction.query_portal_raw(&portal, asked).await?);
            let mut found_rows = 0;
            while let Some(row) = found.try_next().await? {
                found_rows += 1;
                let key = match self.key(&row) {
                    Ok(key) => key,
                    Err(error) => return Ok(Err(error)),
                };
                if self.shardlet.holds(&key) {
                    count += row.try_get::<_, i64>(0)?.cast_unsigned();
                }
            }
            if found_rows < chunk_rows {
                return Ok(Ok(count));
            }
        }
    }

    /// Counts all rows, or those of each value of columns.
    fn sql(&self, columns: &str) -> String {
        let filter = where_of(
            &self.table,
            &self.conditions,
            |index| compared(&self.table, index),
            |number, index| parameter(&self.table, number, index),
        );
        let name = quoted(self.table.name());
        match columns {
            "" => format!("SELECT count(*) FROM {name}{filter}"),
            columns => format!("SELECT count(*), {columns} FROM {name}{filter} GROUP BY {columns}"),
        }
    }

    /// The shard key of a counted row.
    fn key(&self, found: &Row) -> Result<Vec<KeyValue>, BackendError> {
        let value = |(at, index): (usize, &usize)| {
            let column = self.table.columns().get(*index);
            let failed = |what: String| BackendError::Value {
                place: self.place.clone(),
                table: self.table.name().to_owned(),
                column: column.map_or_else(String::new, |column| column.name.clone()),
                what,
            };
            let value = found.try_get::<_, Stored>(at + 1);
            let value = value.map_err(|error| {
                failed(std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string))
            })?;
            value.0.key_value().ok_or_else(|| failed(format!("{} is no value of a key", value.0)))
        };
        self.table.shard_key().iter().enumerate().map(value).collect()
    }
}
