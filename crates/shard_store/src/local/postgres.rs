//! A copy and a fence in a Postgres database that is a shard.
//!
//! A writer locks the fence's table in the mode `ROW SHARE` until its commit, and then reads it; so does what
//! locks one of its rows for share. A replacement that removes or changes rows locks it in the mode
//! `EXCLUSIVE`, and so waits for all of them. Writers that come meanwhile wait behind it: so it waits in
//! turns, the first ones short, and lets those pass that came in between.

use super::copy::LocalCopy;
use super::local_store::{LocalStore, Replaced, Revision, StoredCopy};
use super::rows::{FenceKey, FenceValue, fence_rows, row_changes};
use crate::error::StoreError;
use crate::postgres_database::PostgresDatabase;
use base::BoxFuture;
use std::collections::BTreeMap;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, Transaction};

/// Makes the tables of a shard that are missing. Two sessions that make them at one time would collide in the
/// catalog of Postgres, so they take turns.
pub const POSTGRES_SHARD_TABLES: &str = "
    SELECT pg_advisory_xact_lock(7310577386914342961);
    CREATE TABLE IF NOT EXISTS larimar_shard (
        one integer PRIMARY KEY CHECK (one = 1), revision bigint NOT NULL, copy text);
    CREATE TABLE IF NOT EXISTS larimar_fence (
        map text COLLATE \"C\", mapping text COLLATE \"C\", since bigint NOT NULL, state text NOT NULL,
        PRIMARY KEY (map, mapping))";

/// The first turn of waiting for writers, in which new ones wait, too, and the longest: each is twice as long
/// as the one before, so that one is longer than the writers' transactions are.
const FIRST_TURN_MS: u64 = 250;
const LAST_TURN_MS: u64 = 8000;
/// Those pass now.
const AFTER_TURN: &str =
    "ROLLBACK TO SAVEPOINT larimar_turn; RELEASE SAVEPOINT larimar_turn; SELECT pg_sleep(0.05)";

/// A copy and a fence in a Postgres database.
pub struct PostgresLocal {
    database: PostgresDatabase,
}

impl PostgresLocal {
    /// Those of a database; the tables are made with the first copy.
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresLocal { database }
    }

    async fn read_copy(&self) -> Result<Option<StoredCopy>, StoreError> {
        let row = self.database.run(|transaction| {
            Box::pin(async move {
                match has_tables(transaction).await? {
                    true => row(transaction).await,
                    false => Ok(None),
                }
            })
        });
        let Some((revision, Some(text))) = row.await? else { return Ok(None) };
        let copy = LocalCopy::from_json(&text).map_err(|error| StoreError::refused(self.place(), error))?;
        Ok(Some(StoredCopy { copy, revision: Revision(revision.to_string()) }))
    }
}

/// A reader need not be allowed to make tables.
async fn has_tables(transaction: &Transaction<'_>) -> Result<bool, Error> {
    let select =
        "SELECT to_regclass('larimar_shard') IS NOT NULL AND to_regclass('larimar_fence') IS NOT NULL";
    transaction.query_one(select, &[]).await?.try_get(0)
}

/// Revision and copy, if there ever was one.
async fn row(transaction: &Transaction<'_>) -> Result<Option<(i64, Option<String>)>, Error> {
    let row = transaction.query_opt("SELECT revision, copy FROM larimar_shard", &[]).await?;
    row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

async fn rows(transaction: &Transaction<'_>) -> Result<BTreeMap<FenceKey, FenceValue>, Error> {
    let rows = transaction.query("SELECT map, mapping, since, state FROM larimar_fence", &[]).await?;
    let row = |row: &tokio_postgres::Row| {
        Ok(((row.try_get(0)?, row.try_get(1)?), (row.try_get(2)?, row.try_get(3)?)))
    };
    rows.iter().map(row).collect()
}

/// Waits until no writer holds the fence. Who called bounds the time.
async fn lock_fence(transaction: &Transaction<'_>) -> Result<(), Error> {
    let mut turn_ms = FIRST_TURN_MS;
    loop {
        transaction.batch_execute("SAVEPOINT larimar_turn").await?;
        let lock = format!("SET LOCAL lock_timeout = {turn_ms}; LOCK TABLE larimar_fence IN EXCLUSIVE MODE");
        match transaction.batch_execute(&lock).await {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                transaction.batch_execute(AFTER_TURN).await?;
                turn_ms = LAST_TURN_MS.min(2 * turn_ms);
            }
            locked => return locked,
        }
    }
}

async fn replace(
    transaction: &Transaction<'_>,
    expected: Option<String>,
    text: Option<String>,
    new: BTreeMap<FenceKey, FenceValue>,
) -> Result<Replaced, Error> {
    if !has_tables(transaction).await? {
        transaction.batch_execute(POSTGRES_SHARD_TABLES).await?;
    }
    // Readers and writers of data go on; another replacement waits.
    transaction.batch_execute("LOCK TABLE larimar_shard IN SHARE ROW EXCLUSIVE MODE").await?;
    let there = row(transaction).await?;
    let revision =
        there.as_ref().filter(|(_, copy)| copy.is_some()).map(|(revision, _)| revision.to_string());
    if revision != expected {
        return Ok(Replaced::Conflict);
    }
    let next = there.map_or(0, |(revision, _)| revision) + 1;
    let put = "INSERT INTO larimar_shard (one, revision, copy) VALUES (1, $1, $2)
        ON CONFLICT (one) DO UPDATE SET revision = excluded.revision, copy = excluded.copy";
    transaction.execute(put, &[&next, &text]).await?;
    let changes = row_changes(&rows(transaction).await?, &new);
    if !changes.removed.is_empty() {
        lock_fence(transaction).await?;
    }
    let (maps, mappings): (Vec<&str>, Vec<&str>) =
        changes.removed.iter().map(|(map, mapping)| (map.as_str(), mapping.as_str())).unzip();
    let remove = "DELETE FROM larimar_fence f USING unnest($1::text[], $2::text[]) AS gone (map, mapping)
        WHERE f.map = gone.map AND f.mapping = gone.mapping";
    transaction.execute(remove, &[&maps, &mappings]).await?;
    let maps: Vec<&str> = changes.put.iter().map(|((map, _), _)| map.as_str()).collect();
    let mappings: Vec<&str> = changes.put.iter().map(|((_, mapping), _)| mapping.as_str()).collect();
    let sinces: Vec<i64> = changes.put.iter().map(|(_, (since, _))| *since).collect();
    let states: Vec<&str> = changes.put.iter().map(|(_, (_, state))| state.as_str()).collect();
    let insert = "INSERT INTO larimar_fence (map, mapping, since, state)
        SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])";
    transaction.execute(insert, &[&maps, &mappings, &sinces, &states]).await?;
    Ok(Replaced::Done(text.map(|_| Revision(next.to_string()))))
}

impl LocalStore for PostgresLocal {
    fn place(&self) -> &str {
        self.database.place()
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
        Box::pin(self.database.run(move |transaction| Box::pin(replace(transaction, expected, text, rows))))
    }
}
