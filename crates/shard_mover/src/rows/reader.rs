//! Reads a side's rows of a table one after the other, a batch in memory.

use super::side::Side;
use crate::error::MoveError;
use shard_backend::{Row, RowKey, TableSchema};
use std::collections::VecDeque;

/// A row with its key and the key's bytes, in whose order rows come.
pub(crate) struct Found {
    pub(crate) key: RowKey,
    pub(crate) encoded: Vec<u8>,
    pub(crate) row: Row,
}

/// A table's rows in the order of their keys.
pub(crate) struct Reader<'a> {
    side: &'a Side,
    table: &'a TableSchema,
    batch: VecDeque<Row>,
    after: Option<RowKey>,
    is_at_end: bool,
    found: Option<Found>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(side: &'a Side, table: &'a TableSchema) -> Self {
        Reader { side, table, batch: VecDeque::new(), after: None, is_at_end: false, found: None }
    }

    /// The next row, without passing it.
    pub(crate) async fn peek(&mut self) -> Result<Option<&Found>, MoveError> {
        if self.found.is_none() {
            self.found = self.read().await?;
        }
        Ok(self.found.as_ref())
    }

    /// The next row.
    pub(crate) async fn next(&mut self) -> Result<Option<Found>, MoveError> {
        match self.found.take() {
            Some(found) => Ok(Some(found)),
            None => self.read().await,
        }
    }

    async fn read(&mut self) -> Result<Option<Found>, MoveError> {
        while self.batch.is_empty() && !self.is_at_end {
            let Side { backend, shardlet, bounds, .. } = self.side;
            let batch = backend.scan(self.table, shardlet, self.after.as_ref(), *bounds).await?;
            self.is_at_end = batch.next.is_none();
            self.after = batch.next;
            self.batch = batch.rows.into();
        }
        let Some(row) = self.batch.pop_front() else { return Ok(None) };
        let (key, encoded) = self.table.check_row(&row).map_err(|error| {
            let place = self.side.backend.place().to_owned();
            shard_backend::BackendError::Row { place, error }
        })?;
        Ok(Some(Found { key, encoded: encoded.as_bytes().to_vec(), row }))
    }
}
