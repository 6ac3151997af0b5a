//! Deletes all rows of a mapping from a side that has it no more.

use super::side::Side;
use crate::error::MoveError;
use shard_backend::{Row, RowKey, TableSchema};
use shard_map::Epoch;

/// Deletes a table's rows of the side's mapping; how many. `shown` is called with the count after each batch.
pub(crate) async fn delete_rows(
    table: &TableSchema,
    side: &Side,
    claim: Epoch,
    mut shown: impl FnMut(u64),
) -> Result<u64, MoveError> {
    let (mut after, mut count) = (None, 0);
    loop {
        let batch = side.backend.scan(table, &side.shardlet, after.as_ref(), side.bounds).await?;
        let keys: Vec<RowKey> = batch.rows.iter().map(|row| key_of(table, row)).collect();
        side.delete(table, claim, &keys).await?;
        count += keys.len() as u64;
        shown(count);
        match batch.next {
            Some(next) => after = Some(next),
            None => return Ok(count),
        }
    }
}

/// A row's key, without a check of the row: a row that is wrong is deleted, too.
pub(crate) fn key_of(table: &TableSchema, row: &Row) -> RowKey {
    let values = table.row_key().iter().filter_map(|index| row.values.get(*index)?.key_value());
    RowKey { values: values.collect() }
}
