//! Shards that are SQLite databases.
//!
//! A write is one transaction that begins with the write lock (`BEGIN IMMEDIATE`), so the fence that it reads
//! is held until its commit: what replaces the shard's copy needs the same lock. A read is one transaction,
//! and so one snapshot of fence and data. Each connection has a thread of its own.
//!
//! What always holds: a database that is not there is not made; what is acknowledged is on the disk.

use super::fence_rows::{FenceRow, check_rows};
use crate::fenced::error::RouterError;
use crate::fenced::keys::Keys;
use crate::fenced::routed::Routed;
use crate::fenced::router::Router;
use crate::fenced::work::{AttemptError, ShardWork};
use crate::pool::connector::{ConnectError, ShardConnector};
use crate::pool::credentials::ShardCredentials;
use base::{BoxFuture, Spawner, TaskThread};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use shard_backend::Capabilities;
use shard_map::{KeyValue, Shard};
use shard_store::Access;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a transaction waits for one of another process.
const LOCK_FOR_MAX: Duration = Duration::from_secs(10);

/// Opens SQLite databases: a shard's location is a path, with or without `sqlite:` before it.
pub struct SqliteConnector {
    spawner: Arc<dyn Spawner>,
}

impl SqliteConnector {
    /// A connector whose connections have a thread each.
    pub fn new(spawner: Arc<dyn Spawner>) -> Self {
        SqliteConnector { spawner }
    }
}

/// A database on its thread.
pub struct SqliteConnection {
    thread: Arc<dyn TaskThread>,
    /// Without one an operation that was abandoned still has it.
    connection: Option<Connection>,
}

impl ShardConnector for SqliteConnector {
    type Connection = SqliteConnection;

    fn capabilities(&self) -> Capabilities {
        Capabilities::SQLITE
    }

    fn connect<'a>(
        &'a self,
        shard: &'a Shard,
        _credentials: &'a ShardCredentials,
    ) -> BoxFuture<'a, Result<SqliteConnection, ConnectError>> {
        Box::pin(async move {
            let thread = self.spawner.start_thread("SQLite shard").map_err(ConnectError::new)?;
            let path = shard.location.strip_prefix("sqlite:").unwrap_or(&shard.location).to_owned();
            let opened = on_thread(&thread, move || open(&path)).await;
            let opened = opened.ok_or_else(|| ConnectError::new("its thread is gone"))?;
            Ok(SqliteConnection { thread, connection: Some(opened.map_err(ConnectError::new)?) })
        })
    }

    fn is_usable(&self, connection: &SqliteConnection) -> bool {
        connection.connection.is_some()
    }
}

fn open(path: &str) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_FOR_MAX)?;
    // What is acknowledged outlives a power loss.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// Runs `work` on a thread and waits for it; none if the thread is gone. The work goes on if the wait is
/// dropped.
async fn on_thread<T: Send + 'static>(
    thread: &Arc<dyn TaskThread>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    let task = async move { drop(sender.send(work())) };
    thread.spawn("SQLite shard", Box::pin(task));
    receiver.await.ok()
}

struct SqliteWork<F> {
    work: Arc<F>,
}

impl<F, T, E> ShardWork<SqliteConnection> for SqliteWork<F>
where
    F: Fn(&Transaction<'_>) -> Result<T, E> + Send + Sync + 'static,
    T: Send + 'static,
    E: From<rusqlite::Error> + Send + 'static,
{
    type Output = T;
    type Error = E;

    fn attempt<'a>(
        &'a mut self,
        connection: &'a mut SqliteConnection,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<T, AttemptError<E>>> {
        let gone = || AttemptError::Failed(rusqlite::Error::InvalidQuery.into());
        Box::pin(async move {
            let Some(mut opened) = connection.connection.take() else { return Err(gone()) };
            let (work, routed) = (self.work.clone(), routed.clone());
            let done = on_thread(&connection.thread, move || {
                let outcome = run(&mut opened, &routed, &*work);
                (opened, outcome)
            });
            // Whether it was done is not known if the thread went with it.
            let Some((opened, outcome)) = done.await else {
                return Err(AttemptError::MayBeDone(rusqlite::Error::InvalidQuery.into()));
            };
            connection.connection = Some(opened);
            outcome
        })
    }
}

/// The transaction, on the thread.
fn run<T, E: From<rusqlite::Error>>(
    connection: &mut Connection,
    routed: &Routed,
    work: impl Fn(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, AttemptError<E>> {
    let failed = |error: rusqlite::Error| AttemptError::Failed(error.into());
    let behavior = match routed.access() {
        Access::Write => TransactionBehavior::Immediate,
        Access::Read => TransactionBehavior::Deferred,
    };
    connection.pragma_update(None, "query_only", routed.access() == Access::Read).map_err(failed)?;
    let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
    let rows = fence_rows(&transaction, routed).map_err(failed)?;
    check_rows(routed, &rows).map_err(AttemptError::Refused)?;
    let output = match work(&transaction) {
        Ok(output) => output,
        Err(error) => {
            return Err(match transaction.rollback() {
                Ok(()) => AttemptError::RolledBack(error),
                Err(_) => AttemptError::Failed(error),
            });
        }
    };
    transaction.commit().map_err(|error| AttemptError::MayBeDone(error.into()))?;
    Ok(output)
}

/// The fence's rows of an operation; none in a database that never had a copy.
fn fence_rows(transaction: &Transaction<'_>, routed: &Routed) -> Result<Vec<FenceRow>, rusqlite::Error> {
    let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'larimar_fence'";
    let count: i64 = transaction.prepare(count)?.query_row([], |row| row.get(0))?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let select = "SELECT mapping, since, state FROM larimar_fence WHERE map = ?1 AND mapping = ?2";
    let mut select = transaction.prepare(select)?;
    let mut rows = Vec::new();
    for mapping in routed.mappings() {
        let parameters = (routed.map().name().as_str(), mapping.mapping.to_string());
        let found = select.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for row in found {
            rows.push(row?);
        }
    }
    Ok(rows)
}

impl Router<SqliteConnector> {
    /// Runs a transaction on the shard of a key and commits it. It runs on the connection's thread, and may
    /// run twice.
    pub async fn write<F, T, E>(&self, map: &str, key: &[KeyValue], work: F) -> Result<T, RouterError<E>>
    where
        F: Fn(&Transaction<'_>) -> Result<T, E> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<rusqlite::Error> + Send + 'static,
    {
        self.run(Keys::new(map, &[key]), Access::Write, &mut SqliteWork { work: Arc::new(work) }).await
    }

    /// Reads from the shard of a key. A statement that writes fails.
    pub async fn read<F, T, E>(&self, map: &str, key: &[KeyValue], work: F) -> Result<T, RouterError<E>>
    where
        F: Fn(&Transaction<'_>) -> Result<T, E> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<rusqlite::Error> + Send + 'static,
    {
        self.run(Keys::new(map, &[key]), Access::Read, &mut SqliteWork { work: Arc::new(work) }).await
    }
}
