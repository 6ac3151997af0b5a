//! A connection to a SQLite database, on a thread of its own.
//!
//! What always holds: one operation at a time; a change is one transaction that begins with the write lock
//! (`BEGIN IMMEDIATE`) and is on the disk when it returns; a database that another process has locked is
//! waited for, at most [`LOCK_FOR_MAX`].

use crate::error::StoreError;
use crate::on_thread::on_thread;
use base::TaskThread;
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};
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
    /// The database at `path`, which is opened, and made if it is missing, at the first operation. Operations
    /// block the thread.
    pub fn new(path: &Path, thread: Arc<dyn TaskThread>) -> Self {
        let place = format!("SQLite database {}", path.display()).into();
        SqliteFile { path: path.to_owned(), place, connection: Arc::default(), thread }
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Runs a transaction. A failure before its commit did nothing.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = self.clone();
        let done = on_thread(&self.thread, "SQLite", async move { file.run_here(change) });
        match done.await {
            Some(done) => done,
            None => Err(StoreError::uncertain(&self.place, "the thread that it runs on is gone")),
        }
    }

    fn run_here<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let refused = |error: rusqlite::Error| StoreError::refused(&self.place, error);
        let mut connection = self.connection.lock();
        let opened = match connection.take() {
            Some(opened) => opened,
            None => open(&self.path).map_err(refused)?,
        };
        let opened = connection.insert(opened);
        let transaction =
            opened.transaction_with_behavior(TransactionBehavior::Immediate).map_err(refused)?;
        let outcome = change(&transaction).map_err(refused)?;
        transaction.commit().map_err(|error| StoreError::uncertain(&self.place, error))?;
        Ok(outcome)
    }
}

fn open(path: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(LOCK_FOR_MAX)?;
    // What is acknowledged outlives a power loss.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}
