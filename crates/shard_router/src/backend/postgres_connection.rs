//! A connection to a Postgres shard, and the statements that are prepared on it.
//!
//! What always holds: no more statements are kept than the bound; one that the database does not run any more
//! as it was prepared, because its tables were changed, is prepared anew the next time.

use super::fence_rows::FenceRow;
use super::postgres_error::{PostgresError, PostgresParameters};
use futures_util::future::join3;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Row, Statement};

/// Statements that a connection keeps prepared; one more, and all are prepared anew.
const STATEMENTS_MAX: usize = 256;

/// The fence's rows of a map.
const MAP_FENCE: &str = "SELECT mapping, since, state FROM larimar_fence WHERE map = $1";

/// What a session begins with: it is read-only but for transactions that begin as [`BEGIN_WRITE`]. One whose
/// client is gone, which nobody ends, holds up whatever changes the fence only for so long.
pub(super) const SESSION: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY;
    SET idle_in_transaction_session_timeout = '10min'";
/// Begins a write. Writes share the lock; what changes the fence waits for all of them.
pub(super) const BEGIN_WRITE: &str = "BEGIN READ WRITE; LOCK TABLE larimar_fence IN ROW SHARE MODE";

/// A connection with its prepared statements.
pub struct PostgresConnection {
    pub(super) client: Client,
    statements: Mutex<BTreeMap<String, Statement>>,
}

impl PostgresConnection {
    pub(super) fn new(client: Client) -> Self {
        PostgresConnection { client, statements: Mutex::default() }
    }

    /// Runs a query of one part of a fan-out, in a transaction that only reads; all of its rows.
    pub async fn query(
        &self,
        statement: &str,
        parameters: PostgresParameters<'_>,
    ) -> Result<Vec<Row>, PostgresError> {
        let prepared = match self.prepared(statement) {
            Some(prepared) => prepared,
            None => self.prepare(statement).await?,
        };
        let client = &self.client;
        let (begin, end) = (client.batch_execute("BEGIN READ ONLY"), client.batch_execute("COMMIT"));
        let (begun, rows, ended) = join3(begin, client.query(&prepared, parameters), end).await;
        begun?;
        let rows = self.evicting(statement, rows)?;
        ended?;
        Ok(rows)
    }

    /// The fence's rows of a map; none in a database that never had a copy.
    pub(super) async fn fence_rows(&self, map: &str) -> Result<Vec<FenceRow>, Error> {
        let fence = match self.prepared(MAP_FENCE) {
            Some(fence) => fence,
            None => match self.prepare(MAP_FENCE).await {
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => return Ok(Vec::new()),
                prepared => prepared?,
            },
        };
        let rows = self.evicting(MAP_FENCE, self.client.query(&fence, &[&map]).await)?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
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

    /// The outcome of a prepared statement, which is not kept if its outcome says that it is stale.
    pub(super) fn evicting<T>(&self, text: &str, outcome: Result<T, Error>) -> Result<T, Error> {
        if outcome.as_ref().is_err_and(is_stale) {
            self.statements.lock().remove(text);
        }
        outcome
    }
}

/// Whether a statement may have failed because it was prepared for what is not there any more: its plan can't
/// be used, it is unknown, or a column, table or type is another.
fn is_stale(error: &Error) -> bool {
    error.code().is_some_and(|code| ["0A", "26", "42"].iter().any(|class| code.code().starts_with(class)))
}
