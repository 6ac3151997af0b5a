//! A copy and a fence in a SQLite database that is a shard.
//!
//! A writer's transaction begins with the write lock, so it and a replacement exclude each other.

use super::copy::LocalCopy;
use super::local_store::{LocalStore, Replaced, Revision, StoredCopy};
use super::rows::{FenceKey, FenceValue, fence_rows, row_changes};
use crate::error::StoreError;
use crate::sqlite_file::SqliteFile;
use base::BoxFuture;
use rusqlite::{OptionalExtension, Transaction, params};
use std::collections::BTreeMap;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS larimar_shard (
        one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL, copy TEXT);
    CREATE TABLE IF NOT EXISTS larimar_fence (
        map TEXT NOT NULL, mapping TEXT NOT NULL, since INTEGER NOT NULL, state TEXT NOT NULL,
        PRIMARY KEY (map, mapping)) WITHOUT ROWID";

/// A copy and a fence in a SQLite database.
pub struct SqliteLocal {
    file: SqliteFile,
}

impl SqliteLocal {
    /// Those of a database; the tables are made with the first copy.
    pub fn new(file: SqliteFile) -> Self {
        SqliteLocal { file }
    }

    async fn read_copy(&self) -> Result<Option<StoredCopy>, StoreError> {
        let row = self.file.read("larimar_shard", row);
        let Some(Some((revision, Some(text)))) = row.await? else { return Ok(None) };
        let copy = LocalCopy::from_json(&text).map_err(|error| StoreError::refused(self.place(), error))?;
        Ok(Some(StoredCopy { copy, revision: Revision(revision.to_string()) }))
    }
}

/// Revision and copy, if there ever was one.
fn row(transaction: &Transaction<'_>) -> Result<Option<(i64, Option<String>)>, rusqlite::Error> {
    let select = "SELECT revision, copy FROM larimar_shard";
    transaction.query_row(select, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

fn rows(transaction: &Transaction<'_>) -> Result<BTreeMap<FenceKey, FenceValue>, rusqlite::Error> {
    let mut statement = transaction.prepare("SELECT map, mapping, since, state FROM larimar_fence")?;
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?))))?;
    rows.collect()
}

fn replace(
    transaction: &Transaction<'_>,
    expected: Option<&str>,
    text: Option<&str>,
    new: &BTreeMap<FenceKey, FenceValue>,
) -> Result<Replaced, rusqlite::Error> {
    transaction.execute_batch(TABLES)?;
    let there = row(transaction)?;
    let revision =
        there.as_ref().filter(|(_, copy)| copy.is_some()).map(|(revision, _)| revision.to_string());
    if revision.as_deref() != expected {
        return Ok(Replaced::Conflict);
    }
    let next = there.map_or(0, |(revision, _)| revision) + 1;
    let put = "INSERT INTO larimar_shard (one, revision, copy) VALUES (1, ?1, ?2)
        ON CONFLICT (one) DO UPDATE SET revision = excluded.revision, copy = excluded.copy";
    transaction.execute(put, params![next, text])?;
    let changes = row_changes(&rows(transaction)?, new);
    let mut remove = transaction.prepare("DELETE FROM larimar_fence WHERE map = ?1 AND mapping = ?2")?;
    for (map, mapping) in &changes.removed {
        remove.execute(params![map, mapping])?;
    }
    let insert = "INSERT INTO larimar_fence (map, mapping, since, state) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = transaction.prepare(insert)?;
    for ((map, mapping), (since, state)) in &changes.put {
        insert.execute(params![map, mapping, since, state])?;
    }
    Ok(Replaced::Done(text.map(|_| Revision(next.to_string()))))
}

impl LocalStore for SqliteLocal {
    fn place(&self) -> &str {
        self.file.place()
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<StoredCopy>, StoreError>> {
        Box::pin(self.read_copy())
    }

    fn replace<'a>(
        &'a self,
        expected: Option<&'a Revision>,
        copy: Option<&'a LocalCopy>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        let expected = expected.map(|revision| revision.0.clone());
        let (text, rows) = (copy.map(LocalCopy::to_json), fence_rows(copy));
        Box::pin(
            self.file
                .change(move |transaction| replace(transaction, expected.as_deref(), text.as_deref(), &rows)),
        )
    }
}
