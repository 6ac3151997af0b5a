//! One batch of rows of a Postgres database, read in order.
//!
//! What always holds: of the rows that the database sends, those of one message of the driver are in memory,
//! and the batch: rows are taken one by one, and the connection waits meanwhile. How many rows are asked for
//! at a time follows the rows' size, and is at most [`CHUNK_GROWTH`] times what was read so far: of rows that
//! are longer than those before them not many are sent in vain.

use super::statement::{compared, parameter};
use super::value::Stored;
use crate::backend::batch::{Batch, BatchFill};
use crate::backend::error::BackendError;
use crate::backend::fence::shard_key;
use crate::backend::shardlet::Shardlet;
use crate::limits::{BATCH_BYTES_MAX, BATCH_LOOKED_AT_ROWS_MAX};
use crate::schema::table::TableSchema;
use crate::sql::statement::{all_names, quoted, where_in_order};
use crate::sql::window::Condition;
use crate::value::row::{Row, RowKey};
use futures_util::TryStreamExt;
use std::pin::pin;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Transaction};

/// Rows of a scan's first chunk.
const FIRST_CHUNK_ROWS: usize = 8;
/// How much larger a chunk is than the one before it, at most.
const CHUNK_GROWTH: usize = 4;

/// What a transaction found, or why not; that it could not be asked is outside of it.
pub(super) type Outcome<T> = Result<Result<T, BackendError>, Error>;

/// A scan of a shardlet's rows.
pub(super) struct Scan {
    pub(super) place: String,
    pub(super) table: TableSchema,
    pub(super) conditions: Vec<Condition>,
    pub(super) shardlet: Shardlet,
}

impl Scan {
    pub(super) async fn run(self, transaction: &Transaction<'_>, mut fill: BatchFill) -> Outcome<Batch> {
        // Where all rows within the bounds are the shardlet's, none is looked at in vain.
        let rows_max = match self.shardlet.is_scattered() {
            true => fill.bounds().looked_at_rows_max,
            false => fill.bounds().rows_max,
        };
        let values = self.conditions.iter().flat_map(|condition| condition.values.iter().cloned());
        let values: Vec<Stored> = values.map(|value| Stored(value.into())).collect();
        let parameters: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let portal = transaction.bind(&self.sql(rows_max), &parameters).await?;
        let (mut chunk_rows, mut rows_read, mut bytes_read) = (FIRST_CHUNK_ROWS, 0, 0);
        loop {
            let asked = i32::try_from(chunk_rows).unwrap_or(i32::MAX);
            let mut found = pin!(transaction.query_portal_raw(&portal, asked).await?);
            let mut found_rows = 0;
            while let Some(found_row) = found.try_next().await? {
                found_rows += 1;
                if fill.is_full() {
                    return Ok(Ok(fill.finish(false)));
                }
                let (key, row) = match self.row(&found_row) {
                    Ok(row) => row,
                    Err(error) => return Ok(Err(error)),
                };
                bytes_read += row.size_bytes();
                if !self.shardlet.holds(shard_key(&self.table, &key)) {
                    fill.pass(key);
                } else if !fill.take(key, row) {
                    return Ok(Ok(fill.finish(false)));
                }
            }
            rows_read += found_rows;
            if found_rows < chunk_rows {
                // A read that ended at its limit does not know what follows.
                return Ok(Ok(fill.finish(rows_read < rows_max)));
            }
            chunk_rows = next_chunk_rows(chunk_rows, rows_read, bytes_read);
        }
    }

    fn sql(&self, rows_max: usize) -> String {
        let rest = where_in_order(
            &self.table,
            &self.conditions,
            |index| compared(&self.table, index),
            |number, index| parameter(&self.table, number, index),
        );
        let (columns, name) = (all_names(&self.table), quoted(self.table.name()));
        format!("SELECT {columns} FROM {name}{rest} LIMIT {rows_max}")
    }

    fn row(&self, found: &tokio_postgres::Row) -> Result<(RowKey, Row), BackendError> {
        let mut values = Vec::with_capacity(self.table.columns().len());
        for (index, column) in self.table.columns().iter().enumerate() {
            let value = found.try_get::<_, Stored>(index);
            let value = value.map_err(|error| BackendError::Value {
                place: self.place.clone(),
                table: self.table.name().to_owned(),
                column: column.name.clone(),
                what: std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string),
            })?;
            values.push(value.0);
        }
        let row = Row { values };
        let checked = self.table.check_row(&row);
        let (key, _) = checked.map_err(|error| BackendError::Row { place: self.place.clone(), error })?;
        Ok((key, row))
    }
}

/// As many rows as fit into a batch if they are as long as those so far, but not many more than those.
fn next_chunk_rows(chunk_rows: usize, rows_read: usize, bytes_read: usize) -> usize {
    let row_bytes = (bytes_read / rows_read.max(1)).max(1);
    let fitting = BATCH_BYTES_MAX / row_bytes;
    fitting.min(CHUNK_GROWTH * chunk_rows).clamp(1, BATCH_LOOKED_AT_ROWS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_with_what_was_read_and_are_no_longer_than_a_batch() {
        let of_100 = |chunk_rows, rows_read| next_chunk_rows(chunk_rows, rows_read, 100 * rows_read);
        assert_eq!(
            (of_100(8, 8), of_100(32, 40), of_100(19_000, 90_000)),
            (32, 128, BATCH_LOOKED_AT_ROWS_MAX)
        );
        assert_eq!(next_chunk_rows(8, 8, 8 << 20), 4);
        assert_eq!(next_chunk_rows(8, 8, 800 << 20), 1);
        assert_eq!(next_chunk_rows(8, 8, 0), 32);
    }
}
