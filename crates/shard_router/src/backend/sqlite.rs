//! Shards that are SQLite databases.
//!
//! A write is one transaction that begins with the write lock (`BEGIN IMMEDIATE`), so the fence that it reads
//! is held until its commit: what replaces the shard's copy needs the same lock. A read is one transaction,
//! and so one snapshot of fence and data. Each connection has a thread of its own.
//!
//! What always holds: a database that is not there is not made; what is acknowledged is on the disk; nothing
//! is committed but by the commit of the transaction whose fence passed, whatever its statements do (a commit
//! hook refuses the rest); a thread that an abandoned operation keeps busy counts as a connection of its
//! pool.

use super::fence_rows::{FenceRow, check_rows};
use crate::fan_out::part::{PartRefusal, ShardPart};
use crate::fenced::error::RouterError;
use crate::fenced::keys::Keys;
use crate::fenced::routed::Routed;
use crate::fenced::router::Router;
use crate::fenced::work::{AttemptError, ShardWork};
use crate::pool::connector::{ConnectError, ShardConnector};
use crate::pool::credentials::ShardCredentials;
use crate::pool::lease::Lease;
use base::{BoxFuture, Spawner, TaskThread};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use shard_backend::Capabilities;
use shard_map::{KeyValue, Shard};
use shard_store::Access;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    connection: Option<Opened>,
    lease: Option<Lease>,
}

/// A database with what its hooks share with its transactions.
struct Opened {
    connection: Connection,
    hooks: Arc<Hooks>,
}

/// What the hooks of a connection know.
#[derive(Default)]
struct Hooks {
    /// Whether a commit is the router's.
    may_commit: AtomicBool,
    /// Whether a transaction was rolled back since it began.
    is_rolled_back: AtomicBool,
}

impl SqliteConnection {
    /// Reads for one part of a fan-out, in a transaction on the connection's thread. A statement that writes
    /// fails.
    pub async fn read<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, rusqlite::Error> {
        let done = self.on_thread(move |opened| {
            opened.connection.pragma_update(None, "query_only", true)?;
            let transaction = opened.connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
            let output = work(&transaction)?;
            transaction.rollback().map(|()| output)
        });
        done.await.unwrap_or(Err(rusqlite::Error::InvalidQuery))
    }

    /// Runs `work` with the connection on its thread; none if one of them is gone. It goes on if the wait is
    /// dropped: then the connection is not used again, and its lease ends with the work.
    async fn on_thread<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Opened) -> T + Send + 'static,
    ) -> Option<T> {
        let (mut opened, lease) = (self.connection.take()?, self.lease.clone());
        let done = on_thread(&self.thread, move || {
            let output = work(&mut opened);
            (opened, output, lease)
        });
        let (opened, output, _) = done.await?;
        self.connection = Some(opened);
        Some(output)
    }
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
            let connection = Some(opened.map_err(ConnectError::new)?);
            Ok(SqliteConnection { thread, connection, lease: None })
        })
    }

    fn check_part<'a>(
        &'a self,
        connection: &'a mut SqliteConnection,
        part: &'a ShardPart,
        _now: Duration,
    ) -> BoxFuture<'a, Result<(), PartRefusal>> {
        Box::pin(async move {
            let map = part.map().name().clone();
            let rows = connection.read(move |transaction| map_fence_rows(transaction, map.as_str())).await;
            part.check_rows(rows.map_err(|error| PartRefusal::Unread(error.to_string()))?)
        })
    }

    fn set_lease(&self, connection: &mut SqliteConnection, lease: Option<Lease>) {
        connection.lease = lease;
    }

    fn is_usable(&self, connection: &SqliteConnection) -> bool {
        connection.connection.is_some()
    }
}

fn open(path: &str) -> Result<Opened, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_FOR_MAX)?;
    // What is acknowledged outlives a power loss.
    connection.pragma_update(None, "synchronous", "FULL")?;
    let hooks = Arc::new(Hooks::default());
    let (of_commit, of_rollback) = (hooks.clone(), hooks.clone());
    connection.commit_hook(Some(move || !of_commit.may_commit.load(Ordering::Relaxed)))?;
    connection.rollback_hook(Some(move || of_rollback.is_rolled_back.store(true, Ordering::Relaxed)))?;
    Ok(Opened { connection, hooks })
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
        Box::pin(async move {
            let (work, routed) = (self.work.clone(), routed.clone());
            let done = connection.on_thread(move |opened| run(opened, &routed, &*work));
            // Whether it was done is not known if the thread went with it.
            done.await.unwrap_or_else(|| Err(AttemptError::MayBeDone(rusqlite::Error::InvalidQuery.into())))
        })
    }
}

/// The transaction, on the thread.
fn run<T, E: From<rusqlite::Error>>(
    opened: &mut Opened,
    routed: &Routed,
    work: impl Fn(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, AttemptError<E>> {
    let Opened { connection, hooks } = opened;
    let failed = |error: rusqlite::Error| AttemptError::Failed(error.into());
    let behavior = match routed.access() {
        Access::Write => TransactionBehavior::Immediate,
        Access::Read => TransactionBehavior::Deferred,
    };
    connection.pragma_update(None, "query_only", routed.access() == Access::Read).map_err(failed)?;
    let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
    hooks.is_rolled_back.store(false, Ordering::Relaxed);
    let rows = fence_rows(&transaction, routed).map_err(failed)?;
    check_rows(routed, &rows).map_err(AttemptError::Refused)?;
    let outcome = work(&transaction);
    // What followed was in no transaction, or in one that no fence holds: its commits were refused.
    let is_ended = transaction.is_autocommit() || hooks.is_rolled_back.load(Ordering::Relaxed);
    let output = match outcome {
        Ok(_) if is_ended => return Err(failed(ended())),
        Ok(output) => output,
        Err(error) if is_ended => return Err(AttemptError::Failed(error)),
        Err(error) => {
            return Err(match transaction.rollback() {
                Ok(()) => AttemptError::RolledBack(error),
                Err(_) => AttemptError::Failed(error),
            });
        }
    };
    hooks.may_commit.store(true, Ordering::Relaxed);
    let committed = transaction.commit();
    hooks.may_commit.store(false, Ordering::Relaxed);
    committed.map_err(|error| AttemptError::MayBeDone(error.into()))?;
    Ok(output)
}

/// The error of a work that ended its transaction itself.
fn ended() -> rusqlite::Error {
    let what =
        "a statement ended the transaction (ROLLBACK or COMMIT), so nothing of it was done; return its error";
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK),
        Some(what.to_owned()),
    )
}

/// The fence's rows of a map; none in a database that never had a copy.
fn map_fence_rows(transaction: &Transaction<'_>, map: &str) -> Result<Vec<FenceRow>, rusqlite::Error> {
    if !has_fence(transaction)? {
        return Ok(Vec::new());
    }
    let mut select = transaction.prepare("SELECT mapping, since, state FROM larimar_fence WHERE map = ?1")?;
    let rows = select.query_map([map], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

fn has_fence(transaction: &Transaction<'_>) -> Result<bool, rusqlite::Error> {
    let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'larimar_fence'";
    transaction.prepare(count)?.query_row([], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// The fence's rows of an operation; none in a database that never had a copy.
fn fence_rows(transaction: &Transaction<'_>, routed: &Routed) -> Result<Vec<FenceRow>, rusqlite::Error> {
    if !has_fence(transaction)? {
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
