//! The rows of a shard that is a Postgres database, which has its copy and fence, too.
//!
//! What always holds: an operation is one transaction; one that writes checks fence and claim before its
//! first change, and holds them until its commit. Key columns that are texts are compared by `COLLATE "C"`:
//! with that collation in their declaration, the primary key's index serves scans.

use super::count::Count;
use super::fence::{Held, change_claim, check_hold};
use super::scan::Scan;
use super::schema::actual_schema;
use super::value::{Stored, check, floor, type_text};
use crate::backend::backend::{Backend, check_count};
use crate::backend::batch::{Batch, BatchBounds, BatchFill};
use crate::backend::claim::{Claimed, StoredClaim, release};
use crate::backend::error::BackendError;
use crate::backend::fence::{FenceHold, check_shardlet};
use crate::backend::shardlet::Shardlet;
use crate::capability::capabilities::Capabilities;
use crate::limits::COUNT_FOR_MAX;
use crate::schema::drift::ActualSchema;
use crate::schema::table::TableSchema;
use crate::sql::statement::{all_names, names, on_conflict, quoted};
use crate::sql::window::{Condition, window};
use crate::value::row::{Row, RowError, RowKey};
use crate::value::value::Value;
use base::BoxFuture;
use shard_map::Epoch;
use shard_store::PostgresDatabase;
use std::collections::BTreeMap;
use tokio_postgres::types::ToSql;

/// The rows of a Postgres database.
pub struct PostgresBackend {
    database: PostgresDatabase,
    /// For counts, which may take long.
    counted: PostgresDatabase,
}

impl PostgresBackend {
    /// Those of a database: the one that a `PostgresLocal` has its copy in.
    pub fn new(database: PostgresDatabase) -> Self {
        let counted = database.apart();
        PostgresBackend { database, counted }
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
            let (fill, table) = (BatchFill::new(bounds), table.clone());
            let scan = Scan { place: self.place().to_owned(), table, conditions, shardlet: shardlet.clone() };
            let found = self.database.run(move |transaction| Box::pin(scan.run(transaction, fill)));
            found.await?
        })
    }

    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>> {
        Box::pin(async move {
            let conditions = self.conditions(table, shardlet, None)?;
            let (place, table) = (self.place().to_owned(), table.clone());
            let count = Count { place, table, conditions, shardlet: shardlet.clone() };
            let found =
                self.counted.run_within(COUNT_FOR_MAX, move |transaction| Box::pin(count.run(transaction)));
            found.await?
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
