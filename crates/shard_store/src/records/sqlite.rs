//! Records in a table of a SQLite database.

use super::records::{Put, Record, Records};
use crate::error::StoreError;
use crate::sqlite_file::SqliteFile;
use base::BoxFuture;
use rusqlite::{OptionalExtension, params};

/// The table's name.
const TABLE: &str = "larimar_shard_map";
/// Keys are compared by their bytes, which is SQLite's default.
const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS larimar_shard_map (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID";

/// Records in a SQLite database.
pub struct SqliteRecords {
    file: SqliteFile,
}

impl SqliteRecords {
    /// The records of a database; its table is made with the first put.
    pub fn new(file: SqliteFile) -> Self {
        SqliteRecords { file }
    }
}

impl Records for SqliteRecords {
    fn place(&self) -> &str {
        self.file.place()
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        let (key, value) = (key.to_owned(), value.to_owned());
        Box::pin(self.file.change(move |transaction| {
            transaction.execute(CREATE, [])?;
            let insert = "INSERT INTO larimar_shard_map (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            let count = transaction.execute(insert, params![key, value])?;
            Ok(if count == 1 { Put::Done } else { Put::Taken })
        }))
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let key = key.to_owned();
        let read = self.file.read(TABLE, move |transaction| {
            let select = "SELECT value FROM larimar_shard_map WHERE key = ?1";
            transaction.query_row(select, params![key], |row| row.get(0)).optional()
        });
        Box::pin(async move { Ok(read.await?.flatten()) })
    }

    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        let (from, to) = (from.to_owned(), to.to_owned());
        let count_max = i64::try_from(count_max).unwrap_or(i64::MAX);
        let read = self.file.read(TABLE, move |transaction| {
            let select =
                "SELECT key, value FROM larimar_shard_map WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3";
            let mut statement = transaction.prepare(select)?;
            let rows = statement.query_map(params![from, to, count_max], |row| {
                Ok(Record { key: row.get(0)?, value: row.get(1)? })
            })?;
            rows.collect()
        });
        Box::pin(async move { Ok(read.await?.unwrap_or_default()) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let key = key.to_owned();
        Box::pin(self.file.change(move |transaction| {
            transaction.execute(CREATE, [])?;
            transaction.execute("DELETE FROM larimar_shard_map WHERE key = ?1", params![key]).map(drop)
        }))
    }
}
