//! The rows of a shard that is a SQLite database, in the file that has its copy and fence, too.
//!
//! What always holds: an operation is one transaction; one that writes begins with the write lock and checks
//! fence and claim before its first change. A scan steps only over the rows of its batch, if the primary
//! key's order is that of the row key.

use super::count::{count_rows, select_count};
use super::fence::{change_claim, check_hold, has_table};
use super::reader::{Outcome, Reader, compared, row_error};
use super::schema::actual_schema;
use super::value::{stored, stored_key};
use crate::backend::backend::{Backend, check_count};
use crate::backend::batch::{Batch, BatchBounds, BatchFill};
use crate::backend::claim::{Claimed, StoredClaim, release};
use crate::backend::error::BackendError;
use crate::backend::fence::{FenceHold, check_shardlet, shard_key};
use crate::backend::shardlet::Shardlet;
use crate::capability::capabilities::Capabilities;
use crate::schema::drift::ActualSchema;
use crate::schema::table::TableSchema;
use crate::sql::statement::{all_names, on_conflict, quoted, where_in_order};
use crate::sql::window::{Condition, window};
use crate::value::row::{Row, RowError, RowKey};
use base::BoxFuture;
use rusqlite::types::Value as Sql;
use rusqlite::{Statement, Transaction, params_from_iter};
use shard_map::Epoch;
use shard_store::{SqliteFile, StoreError};

/// The rows of a SQLite database.
pub struct SqliteBackend {
    file: SqliteFile,
}

impl SqliteBackend {
    /// Those of a database: the one that a `SqliteLocal` has its copy in.
    pub fn new(file: SqliteFile) -> Self {
        SqliteBackend { file }
    }

    fn row_error(&self, error: RowError) -> BackendError {
        row_error(self.file.place(), error)
    }

    fn no_table(&self, table: &TableSchema) -> BackendError {
        StoreError::refused(self.file.place(), format!("there is no table `{}`", table.name())).into()
    }

    /// Reads what `select` asks of a window, by a statement of the window's condition and order.
    async fn read<T: Send + 'static>(
        &self,
        table: &TableSchema,
        conditions: Vec<Condition>,
        select: impl FnOnce(&TableSchema, &[Condition]) -> String + Send + 'static,
        read: impl FnOnce(&Reader<'_>, Statement<'_>, Vec<Sql>) -> Outcome<T> + Send + 'static,
    ) -> Result<T, BackendError> {
        let (place, table_of) = (self.file.place().to_owned(), table.clone());
        let found = self.file.read(table.name(), move |transaction| {
            let reader = Reader { place: &place, table: &table_of };
            let select = select(&table_of, &conditions);
            let values = conditions.iter().flat_map(|condition| &condition.values).map(stored_key);
            let values = values.collect();
            read(&reader, transaction.prepare(&select)?, values)
        });
        found.await?.ok_or_else(|| self.no_table(table))?
    }

    /// Runs a statement once for each list of parameters, behind the fence.
    async fn change(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        hold: FenceHold,
        sql: String,
        parameters: Vec<Vec<Sql>>,
    ) -> Result<(), BackendError> {
        let (place, shardlet, name) =
            (self.file.place().to_owned(), shardlet.clone(), table.name().to_owned());
        let changed = self.file.change(move |transaction| {
            if let Err(refused) = check_hold(transaction, &place, &shardlet, hold)? {
                return Ok(Err(refused));
            }
            if !has_table(transaction, &name)? {
                let what = format!("there is no table `{name}`");
                return Ok(Err(StoreError::refused(&place, what).into()));
            }
            let mut statement = transaction.prepare(&sql)?;
            for values in parameters {
                statement.execute(params_from_iter(values))?;
            }
            Ok(Ok(()))
        });
        changed.await?
    }

    async fn change_claim(
        &self,
        shardlet: &Shardlet,
        change: impl FnOnce(Claimed<'_>, Option<StoredClaim>) -> Result<Option<StoredClaim>, BackendError>
        + Send
        + 'static,
    ) -> Result<(), BackendError> {
        let Some((map, mapping)) = shardlet.mapping() else { return Ok(()) };
        let (place, map, mapping) = (self.file.place().to_owned(), map.name().clone(), mapping.clone());
        let changed = self.file.change(move |transaction: &Transaction<'_>| {
            let claimed = Claimed { place: &place, map: &map, mapping: &mapping };
            change_claim(transaction, claimed, change)
        });
        changed.await?
    }

    /// What is stored of a row.
    fn stored_row(&self, table: &TableSchema, row: &Row) -> Result<Vec<Sql>, BackendError> {
        let values = table.columns().iter().zip(&row.values);
        let values = values.map(|(column, value)| {
            stored(value).map_err(|what| BackendError::Value {
                place: self.file.place().to_owned(),
                table: table.name().to_owned(),
                column: column.name.clone(),
                what,
            })
        });
        values.collect()
    }
}

/// Whole rows, in the order of their keys.
fn select_rows(table: &TableSchema, conditions: &[Condition]) -> String {
    let compared = |index: usize| compared(table, index);
    let rest = where_in_order(table, conditions, compared, |number, _| format!("?{number}"));
    format!("SELECT {} FROM {}{rest}", all_names(table), quoted(table.name()))
}

/// The rows of one batch.
fn fill_batch(
    reader: &Reader<'_>,
    mut statement: Statement<'_>,
    values: Vec<Sql>,
    shardlet: &Shardlet,
    bounds: BatchBounds,
) -> Outcome<Batch> {
    let mut rows = statement.query(params_from_iter(values))?;
    let mut fill = BatchFill::new(bounds);
    while let Some(found) = rows.next()? {
        if fill.is_full() {
            return Ok(Ok(fill.finish(false)));
        }
        let (key, row) = match reader.row(found)? {
            Ok(row) => row,
            Err(error) => return Ok(Err(error)),
        };
        if !shardlet.holds(shard_key(reader.table, &key)) {
            fill.pass(key);
        } else if !fill.take(key, row) {
            return Ok(Ok(fill.finish(false)));
        }
    }
    Ok(Ok(fill.finish(true)))
}

impl Backend for SqliteBackend {
    fn place(&self) -> &str {
        self.file.place()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::SQLITE
    }

    fn actual_schema(&self) -> BoxFuture<'_, Result<ActualSchema, BackendError>> {
        Box::pin(async move { Ok(self.file.read_any(actual_schema).await?.unwrap_or_default()) })
    }

    fn claim<'a>(&'a self, shardlet: &'a Shardlet, claim: Epoch) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.change_claim(shardlet, move |claimed, there| claimed.claim(there, claim)))
    }

    fn release<'a>(
        &'a self,
        shardlet: &'a Shardlet,
        claim: Epoch,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.change_claim(shardlet, move |_, there| Ok(release(there, claim))))
    }

    fn scan<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        after: Option<&'a RowKey>,
        bounds: BatchBounds,
    ) -> BoxFuture<'a, Result<Batch, BackendError>> {
        Box::pin(async move {
            let conditions = window(table, shardlet, after).map_err(|error| self.row_error(error))?;
            let shardlet = shardlet.clone();
            let read = move |reader: &Reader<'_>, statement: Statement<'_>, values| {
                fill_batch(reader, statement, values, &shardlet, bounds)
            };
            self.read(table, conditions, select_rows, read).await
        })
    }

    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>> {
        Box::pin(async move {
            let conditions = window(table, shardlet, None).map_err(|error| self.row_error(error))?;
            let (shardlet, is_whole) = (shardlet.clone(), shardlet.is_whole());
            let select = move |table: &TableSchema, conditions: &[Condition]| {
                select_count(table, conditions, is_whole)
            };
            let read = move |reader: &Reader<'_>, statement: Statement<'_>, values| {
                count_rows(reader, statement, values, &shardlet)
            };
            self.read(table, conditions, select, read).await
        })
    }

    fn write<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        rows: &'a [Row],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            check_count(self.place(), rows.len())?;
            let mut parameters = Vec::with_capacity(rows.len());
            for row in rows {
                let (key, _) = table.check_row(row).map_err(|error| self.row_error(error))?;
                check_shardlet(self.place(), table, shardlet, &key)?;
                parameters.push(self.stored_row(table, row)?);
            }
            let numbers: Vec<String> =
                (1..=table.columns().len()).map(|number| format!("?{number}")).collect();
            let (name, columns, values) = (quoted(table.name()), all_names(table), numbers.join(", "));
            let insert = format!("INSERT INTO {name} ({columns}) VALUES ({values}){}", on_conflict(table));
            self.change(table, shardlet, hold, insert, parameters).await
        })
    }

    fn delete<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        keys: &'a [RowKey],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            check_count(self.place(), keys.len())?;
            for key in keys {
                check_shardlet(self.place(), table, shardlet, key)?;
                table.encode_key(key).map_err(|error| self.row_error(error))?;
            }
            let parameters = keys.iter().map(|key| key.values.iter().map(stored_key).collect()).collect();
            let equal = table.row_key().iter().enumerate();
            let equal = equal.map(|(at, index)| format!("{} = ?{}", compared(table, *index), at + 1));
            let equal = equal.collect::<Vec<_>>().join(" AND ");
            let delete = format!("DELETE FROM {} WHERE {equal}", quoted(table.name()));
            self.change(table, shardlet, hold, delete, parameters).await
        })
    }
}
