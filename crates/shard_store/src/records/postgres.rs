//! Records in a table of a Postgres database.

use super::records::{Put, Record, Records};
use crate::error::StoreError;
use crate::postgres_database::PostgresDatabase;
use base::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::{Row, Transaction};

/// Keys are compared by their bytes, whatever the database's collation is. Two sessions that make it at one
/// time would collide in the catalog of Postgres, so they take turns.
const CREATE: &str = "SELECT pg_advisory_xact_lock(7310577386914342960);
    CREATE TABLE IF NOT EXISTS larimar_shard_map (key text COLLATE \"C\" PRIMARY KEY, value text NOT NULL)";

/// Records in a Postgres database.
pub struct PostgresRecords {
    database: PostgresDatabase,
    /// It was seen; until then each operation looks.
    has_table: AtomicBool,
}

impl PostgresRecords {
    /// The records of a database; its table is made with the first put. A reader needs `SELECT` on it only.
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresRecords { database, has_table: AtomicBool::new(false) }
    }

    async fn has_table(&self) -> Result<bool, StoreError> {
        if self.has_table.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let has_table = self.database.run(|transaction| {
            Box::pin(async move {
                let select = "SELECT to_regclass('larimar_shard_map') IS NOT NULL";
                transaction.query_one(select, &[]).await?.try_get(0)
            })
        });
        let has_table = has_table.await?;
        self.has_table.store(has_table, Ordering::Relaxed);
        Ok(has_table)
    }

    /// Runs a transaction over the table; none if there is no table.
    async fn run<T, F>(&self, work: F) -> Result<Option<T>, StoreError>
    where
        T: Send,
        F: for<'a> FnOnce(&'a Transaction<'a>) -> BoxFuture<'a, Result<T, tokio_postgres::Error>> + Send,
    {
        match self.has_table().await? {
            true => self.database.run(work).await.map(Some),
            false => Ok(None),
        }
    }
}

fn record(row: &Row) -> Result<Record, tokio_postgres::Error> {
    Ok(Record { key: row.try_get(0)?, value: row.try_get(1)? })
}

impl Records for PostgresRecords {
    fn place(&self) -> &str {
        self.database.place()
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            let (key, value) = (key.to_owned(), value.to_owned());
            if !self.has_table().await? {
                self.database.run(|transaction| Box::pin(transaction.batch_execute(CREATE))).await?;
            }
            let put = self.database.run(move |transaction| {
                Box::pin(async move {
                    let insert =
                        "INSERT INTO larimar_shard_map (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
                    transaction.execute(insert, &[&key, &value]).await
                })
            });
            Ok(if put.await? == 1 { Put::Done } else { Put::Taken })
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let key = key.to_owned();
        let read = self.run(move |transaction| {
            Box::pin(async move {
                let select = "SELECT value FROM larimar_shard_map WHERE key = $1";
                let row = transaction.query_opt(select, &[&key]).await?;
                row.map(|row| row.try_get(0)).transpose()
            })
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
        let read = self.run(move |transaction| {
            Box::pin(async move {
                let select =
                    "SELECT key, value FROM larimar_shard_map WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3";
                transaction.query(select, &[&from, &to, &count_max]).await?.iter().map(record).collect()
            })
        });
        Box::pin(async move { Ok(read.await?.unwrap_or_default()) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let key = key.to_owned();
        let removal = self.run(move |transaction| {
            Box::pin(async move {
                transaction.execute("DELETE FROM larimar_shard_map WHERE key = $1", &[&key]).await.map(drop)
            })
        });
        Box::pin(async move { removal.await.map(drop) })
    }
}
