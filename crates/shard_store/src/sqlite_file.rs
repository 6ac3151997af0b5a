//! A connection to a SQLite database, on a thread of its own.
//!
//! What always holds: one operation at a time; a change is one transaction that begins with the write lock
//! (`BEGIN IMMEDIATE`) and is on the disk when it returns; a read makes and changes nothing, and needs no
//! right to write; a database that another process has locked is waited for, at most [`LOCK_FOR_MAX`].

use crate::error::StoreError;
use crate::on_thread::on_thread;
use base::TaskThread;
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long an operation waits for another process.
const LOCK_FOR_MAX: Duration = Duration::from_secs(10);

/// A database file. Cheap to clone; clones share one connection.
#[derive(Clone)]
pub struct SqliteFile {
    path: PathBuf,
    place: Arc<str>,
    connection: Arc<Mutex<Option<Connection>>>,
    thread: Arc<dyn TaskThread>,
}

impl SqliteFile {
    /// The database at `path`, which is opened at the first operation, and made by the first change.
    /// Operations block the thread.
    pub fn new(path: &Path, thread: Arc<dyn TaskThread>) -> Self {
        let place = format!("SQLite database {}", path.display()).into();
        SqliteFile { path: path.to_owned(), place, connection: Arc::default(), thread }
    }

    /// Where it is, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Runs a transaction that changes something. A failure before its commit did nothing.
    pub async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = self.clone();
        let work = async move {
            let mut slot = file.connection.lock();
            file.run_here(&mut slot, TransactionBehavior::Immediate, change)
        };
        on_thread(&self.thread, "SQLite", work).await.unwrap_or_else(|| Err(self.gone()))
    }

    /// Reads from a table; none if there is no such table, or no database.
    pub async fn read<T: Send + 'static>(
        &self,
        table: &str,
        query: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let table = table.to_owned();
        let found = self.read_any(move |transaction| {
            let select = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
            let count: i64 = transaction.query_row(select, [table], |row| row.get(0))?;
            if count == 0 { Ok(None) } else { query(transaction).map(Some) }
        });
        Ok(found.await?.flatten())
    }

    /// Reads at one instant; none if there is no database.
    pub async fn read_any<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let file = self.clone();
        let work = async move {
            let mut slot = file.connection.lock();
            if slot.is_none() && !file.path.exists() {
                return Ok(None);
            }
            file.run_here(&mut slot, TransactionBehavior::Deferred, query).map(Some)
        };
        on_thread(&self.thread, "SQLite", work).await.unwrap_or_else(|| Err(self.gone()))
    }

    fn gone(&self) -> StoreError {
        StoreError::uncertain(&self.place, "the thread that it runs on is gone")
    }

    fn run_here<T>(
        &self,
        slot: &mut Option<Connection>,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let refused = |error: rusqlite::Error| StoreError::refused(&self.place, error);
        let opened = match slot.take() {
            Some(opened) => opened,
            None => open(&self.path, behavior).map_err(refused)?,
        };
        let opened = slot.insert(opened);
        let transaction = opened.transaction_with_behavior(behavior).map_err(refused)?;
        let outcome = work(&transaction).map_err(refused)?;
        transaction.commit().map_err(|error| StoreError::uncertain(&self.place, error))?;
        Ok(outcome)
    }
}

/// A reader makes no file; where it may not write, SQLite opens one for reads only.
fn open(path: &Path, behavior: TransactionBehavior) -> Result<Connection, rusqlite::Error> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if matches!(behavior, TransactionBehavior::Immediate) {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_FOR_MAX)?;
    // What is acknowledged outlives a power loss.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}
