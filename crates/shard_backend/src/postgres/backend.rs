//! The rows of a shard that is a Postgres database, which has its copy and fence, too.
//!
//! What always holds: an operation is one transaction; one that writes checks fence and claim before its
//! first change, and holds them until its commit. Rows of a scan come in chunks, whose count follows the
//! rows' size, so that a batch of long rows is not read many times over. Key columns that are texts are
//! compared by `COLLATE "C"`: with that collation in their declaration, the primary key's index serves scans.

use super::fence::{Held, change_claim, check_hold};
use super::schema::actual_schema;
use super::value::{Stored, check, floor, type_text};
use crate::backend::backend::{Backend, check_count};
use crate::backend::batch::{Batch, BatchBounds, BatchFill};
use crate::backend::claim::{Claimed, StoredClaim, release};
use crate::backend::error::BackendError;
use crate::backend::fence::{FenceHold, check_shardlet, shard_key};
use crate::backend::shardlet::Shardlet;
use crate::capability::capabilities::Capabilities;
use crate::limits::{BATCH_BYTES_MAX, BATCH_LOOKED_AT_ROWS_MAX};
use crate::schema::drift::ActualSchema;
use crate::schema::table::TableSchema;
use crate::sql::statement::{all_names, names, on_conflict, quoted, where_in_order};
use crate::sql::window::{Condition, window};
use crate::value::column_kind::ColumnKind;
use crate::value::row::{Row, RowError, RowKey};
use crate::value::value::Value;
use base::BoxFuture;
use shard_map::Epoch;
use shard_store::PostgresDatabase;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Transaction};

/// Rows of a scan's first chunk; the next ones have as many as fit into a batch by then.
const FIRST_CHUNK_ROWS: usize = 64;

/// What a transaction found, or why not; that it could not be asked is outside of it.
type Outcome<T> = Result<Result<T, BackendError>, Error>;

/// The rows of a Postgres database.
pub struct PostgresBackend {
    database: PostgresDatabase,
}

impl PostgresBackend {
    /// Those of a database: the one that a `PostgresLocal` has its copy in.
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresBackend { database }
    }

    fn row_error(&self, error: RowError) -> BackendError {
        BackendError::Row { place: self.place().to_owned(), error }
    }

    fn held(&self, shardlet: &Shardlet) -> Option<Held> {
        let (map, mapping) = shardlet.mapping()?;
        Some(Held { place: self.place().to_owned(), map: map.name().clone(), mapping: mapping.clone() })
    }

    fn conditions(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        after: Option<&RowKey>,
    ) -> Result<Vec<Condition>, BackendError> {
        let found = window(table, shardlet, after).map_err(|error| self.row_error(error))?;
        Ok(found.into_iter().map(|condition| condition.rounded_down(floor)).collect())
    }

    /// Reads rows of a window in order, until `take` says that it has enough.
    async fn read<T: Take + 'static>(&self, read: Read, take: T) -> Result<T::Found, BackendError> {
        let found = self.database.run(move |transaction| Box::pin(read.run(transaction, take)));
        found.await?
    }

    /// Runs a statement on columns of values, behind the fence.
    async fn change(
        &self,
        shardlet: &Shardlet,
        hold: FenceHold,
        sql: String,
        columns: Vec<Vec<Stored>>,
    ) -> Result<(), BackendError> {
        let held = self.held(shardlet);
        let changed = self.database.run(move |transaction| {
            Box::pin(async move {
                if let Some(held) = &held
                    && let Err(refused) = check_hold(transaction, held, hold).await?
                {
                    return Ok(Err(refused));
                }
                let parameters = columns.iter().map(|column| column as &(dyn ToSql + Sync));
                transaction.execute(&sql, &parameters.collect::<Vec<_>>()).await?;
                Ok(Ok(()))
            })
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
        let Some(held) = self.held(shardlet) else { return Ok(()) };
        let changed = self
            .database
            .run(move |transaction| Box::pin(async move { change_claim(transaction, &held, change).await }));
        changed.await?
    }

    fn check_values(&self, table: &TableSchema, row: &Row) -> Result<(), BackendError> {
        table.columns().iter().zip(&row.values).try_for_each(|(column, value)| {
            check(value).map_err(|what| BackendError::Value {
                place: self.place().to_owned(),
                table: table.name().to_owned(),
                column: column.name.clone(),
                what,
            })
        })
    }
}

/// `unnest($1::int4[], …)` of columns, by their place.
fn unnest(table: &TableSchema, columns: impl Iterator<Item = usize>) -> String {
    let kinds = columns.filter_map(|index| table.columns().get(index)).map(|column| column.kind);
    let arrays = kinds.enumerate().map(|(at, kind)| format!("${}::{}[]", at + 1, type_text(kind)));
    format!("unnest({})", arrays.collect::<Vec<_>>().join(", "))
}

/// Rows as a list of values a column.
fn by_columns(count: usize, rows: impl Iterator<Item = Vec<Value>>) -> Vec<Vec<Stored>> {
    let mut columns: Vec<Vec<Stored>> = (0..count).map(|_| Vec::new()).collect();
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(Stored(value)));
    }
    columns
}

/// What takes rows that are read in order.
trait Take: Send {
    type Found: Send;
    /// Takes a row; false if it has enough, without the row.
    fn take(&mut self, key: RowKey, row: Row) -> bool;
    /// Whether it takes no further row.
    fn is_full(&self) -> bool;
    fn finish(self, is_at_end: bool) -> Self::Found;
}

struct TakeBatch {
    table: Arc<TableSchema>,
    shardlet: Shardlet,
    fill: BatchFill,
}

impl Take for TakeBatch {
    type Found = Batch;

    fn take(&mut self, key: RowKey, row: Row) -> bool {
        if self.shardlet.holds(shard_key(&self.table, &key)) {
            return self.fill.take(key, row);
        }
        self.fill.pass(key);
        true
    }

    fn is_full(&self) -> bool {
        self.fill.is_full()
    }

    fn finish(self, is_at_end: bool) -> Batch {
        self.fill.finish(is_at_end)
    }
}

struct TakeCount {
    table: Arc<TableSchema>,
    shardlet: Shardlet,
    count: u64,
}

impl Take for TakeCount {
    type Found = u64;

    fn take(&mut self, key: RowKey, _: Row) -> bool {
        self.count += u64::from(self.shardlet.holds(shard_key(&self.table, &key)));
        true
    }

    fn is_full(&self) -> bool {
        false
    }

    fn finish(self, _: bool) -> u64 {
        self.count
    }
}

/// A read of rows in order.
struct Read {
    place: String,
    table: Arc<TableSchema>,
    conditions: Vec<Condition>,
    /// At most so many rows; none: all.
    rows_max: Option<usize>,
}

impl Read {
    fn sql(&self) -> String {
        let is_text = |index: usize| self.kind(index) == Some(ColumnKind::Text);
        let compared = |index: usize| {
            let name = names(&self.table, &[index]);
            if is_text(index) { format!("{name} COLLATE \"C\"") } else { name }
        };
        let parameter = |number: usize, index: usize| {
            format!("${number}::{}", self.kind(index).map_or("text", type_text))
        };
        let rest = where_in_order(&self.table, &self.conditions, compared, parameter);
        let limit = self.rows_max.map_or(String::new(), |rows_max| format!(" LIMIT {rows_max}"));
        format!("SELECT {} FROM {}{rest}{limit}", all_names(&self.table), quoted(self.table.name()))
    }

    fn kind(&self, index: usize) -> Option<ColumnKind> {
        self.table.columns().get(index).map(|column| column.kind)
    }

    async fn run<T: Take>(self, transaction: &Transaction<'_>, mut take: T) -> Outcome<T::Found> {
        let values = self.conditions.iter().flat_map(|condition| condition.values.iter().cloned());
        let values: Vec<Stored> = values.map(|value| Stored(value.into())).collect();
        let parameters: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let portal = transaction.bind(&self.sql(), &parameters).await?;
        let (mut chunk_rows, mut rows_read, mut bytes_read) = (FIRST_CHUNK_ROWS, 0, 0);
        loop {
            let found =
                transaction.query_portal(&portal, i32::try_from(chunk_rows).unwrap_or(i32::MAX)).await?;
            for found_row in &found {
                if take.is_full() {
                    return Ok(Ok(take.finish(false)));
                }
                let (key, row) = match self.row(found_row) {
                    Ok(row) => row,
                    Err(error) => return Ok(Err(error)),
                };
                bytes_read += row.size_bytes();
                if !take.take(key, row) {
                    return Ok(Ok(take.finish(false)));
                }
            }
            rows_read += found.len();
            if found.len() < chunk_rows {
                // A read that ended at its limit does not know what follows.
                let is_at_end = self.rows_max.is_none_or(|rows_max| rows_read < rows_max);
                return Ok(Ok(take.finish(is_at_end)));
            }
            let row_bytes = (bytes_read / rows_read.max(1)).max(1);
            chunk_rows = (BATCH_BYTES_MAX / row_bytes).clamp(1, BATCH_LOOKED_AT_ROWS_MAX);
        }
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

impl Backend for PostgresBackend {
    fn place(&self) -> &str {
        self.database.place()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::POSTGRES
    }

    fn actual_schema(&self) -> BoxFuture<'_, Result<ActualSchema, BackendError>> {
        Box::pin(
            async move { Ok(self.database.run(|transaction| Box::pin(actual_schema(transaction))).await?) },
        )
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
            let conditions = self.conditions(table, shardlet, after)?;
            let (fill, table) = (BatchFill::new(bounds), Arc::new(table.clone()));
            // Where all rows within the bounds are the shardlet's, none is looked at in vain.
            let rows_max = match shardlet.is_scattered() {
                true => fill.bounds().looked_at_rows_max,
                false => fill.bounds().rows_max,
            };
            let read = Read {
                place: self.place().to_owned(),
                table: table.clone(),
                conditions,
                rows_max: Some(rows_max),
            };
            self.read(read, TakeBatch { table, shardlet: shardlet.clone(), fill }).await
        })
    }

    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>> {
        Box::pin(async move {
            let conditions = self.conditions(table, shardlet, None)?;
            let table = Arc::new(table.clone());
            let read =
                Read { place: self.place().to_owned(), table: table.clone(), conditions, rows_max: None };
            self.read(read, TakeCount { table, shardlet: shardlet.clone(), count: 0 }).await
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
            // A statement changes a row once: the last one of a key stays.
            let mut last = BTreeMap::new();
            for row in rows {
                let (key, encoded) = table.check_row(row).map_err(|error| self.row_error(error))?;
                check_shardlet(self.place(), table, shardlet, &key)?;
                self.check_values(table, row)?;
                last.insert(encoded, row);
            }
            let count = table.columns().len();
            let columns = by_columns(count, last.into_values().map(|row| row.values.clone()));
            let (name, all, from) = (quoted(table.name()), all_names(table), unnest(table, 0..count));
            let insert = format!("INSERT INTO {name} ({all}) SELECT * FROM {from}{}", on_conflict(table));
            self.change(shardlet, hold, insert, columns).await
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
            // No row has such a key.
            let keys = keys.iter().filter(|key| key.values.iter().all(|value| floor(value).is_none()));
            let values = keys.map(|key| key.values.iter().cloned().map(Value::from).collect());
            let columns = by_columns(table.row_key().len(), values);
            let from = unnest(table, table.row_key().iter().copied());
            let key_names = names(table, table.row_key());
            let equal = table.row_key().iter().map(|index| {
                let name = names(table, &[*index]);
                format!("larimar_there.{name} = larimar_gone.{name}")
            });
            let equal = equal.collect::<Vec<_>>().join(" AND ");
            let name = quoted(table.name());
            let delete = format!(
                "DELETE FROM {name} AS larimar_there USING {from} AS larimar_gone ({key_names}) WHERE {equal}"
            );
            self.change(shardlet, hold, delete, columns).await
        })
    }
}
