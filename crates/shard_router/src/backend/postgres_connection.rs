//! A connection to a Postgres shard, and the statements that are prepared on it.
//!
//! What always holds: no more statements are kept than the bound.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use tokio_postgres::{Client, Error, Statement};

/// Statements that a connection keeps prepared; one more, and all are prepared anew.
const STATEMENTS_MAX: usize = 256;

/// A connection with its prepared statements.
pub struct PostgresConnection {
    pub(super) client: Client,
    statements: Mutex<BTreeMap<String, Statement>>,
}

impl PostgresConnection {
    pub(super) fn new(client: Client) -> Self {
        PostgresConnection { client, statements: Mutex::default() }
    }

    /// A statement that was prepared before.
    pub(super) fn prepared(&self, text: &str) -> Option<Statement> {
        self.statements.lock().get(text).cloned()
    }

    /// Prepares a statement and keeps it.
    pub(super) async fn prepare(&self, text: &str) -> Result<Statement, Error> {
        let statement = self.client.prepare(text).await?;
        let mut statements = self.statements.lock();
        if statements.len() >= STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(text.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// With what the database says, which the driver's own text leaves out.
pub(super) fn shown(error: &Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned())
}
