//! A transaction of one Postgres shard, behind the shard's fence.
//!
//! `BEGIN`, the fence and the first statement go out together, in one round trip if the statement is prepared
//! already. A write locks the fence's table in a mode that writes share until its commit, and what changes
//! the shard's copy waits for it (`shard_store`). A lock of the table is held in memory; one of the row would
//! be written to the log, and its sharers to a list on disk. It is taken by a statement that takes no
//! snapshot, so the fence that is read next is not older than the lock, at any level of isolation. A read
//! has one snapshot for fence and data, and locks nothing.
//!
//! Sessions are read-only but for these transactions: if the database ends the message that begins one before
//! it has done anything, the statements sent behind it fail, and don't change anything unfenced.
//!
//! What always holds: the work sees no answer before the fence has let it pass; a transaction of which a
//! statement failed, or whose fence refused, is not committed, whatever the work made of the error. (Postgres
//! answers a commit of a failed transaction as if all were well.)

use super::fence_rows::{FenceRow, check_rows};
use super::postgres_connection::{BEGIN_WRITE, PostgresConnection};
use super::postgres_error::{PostgresError, PostgresParameters};
use crate::fenced::routed::Routed;
use crate::fenced::work::AttemptError;
use futures_util::future::join;
use shard_store::{Access, Refusal};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Mutex;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

const FENCE: &str = "SELECT mapping, since, state FROM larimar_fence WHERE map = $1 AND mapping = ANY($2)";
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A transaction of one shard.
pub struct PostgresTransaction<'a> {
    connection: &'a PostgresConnection,
    routed: &'a Routed,
    /// Whether it has begun, and what the fence said. Statements are one after the other.
    begun: Mutex<Option<Result<(), Refusal>>>,
    is_failed: AtomicBool,
}

impl<'a> PostgresTransaction<'a> {
    pub(super) fn new(connection: &'a PostgresConnection, routed: &'a Routed) -> Self {
        PostgresTransaction { connection, routed, begun: Mutex::new(None), is_failed: AtomicBool::new(false) }
    }

    /// The shard, the map and the mappings that it may touch.
    pub fn routed(&self) -> &Routed {
        self.routed
    }

    /// Runs a statement; how many rows it changed.
    pub async fn execute(
        &self,
        statement: &str,
        parameters: PostgresParameters<'_>,
    ) -> Result<u64, PostgresError> {
        self.statement(statement, async |statement| {
            self.connection.client.execute(&statement, parameters).await
        })
        .await
    }

    /// Runs a query; all of its rows.
    pub async fn query(
        &self,
        statement: &str,
        parameters: PostgresParameters<'_>,
    ) -> Result<Vec<Row>, PostgresError> {
        self.statement(statement, async |statement| {
            self.connection.client.query(&statement, parameters).await
        })
        .await
    }

    async fn statement<T>(
        &self,
        text: &str,
        run: impl AsyncFnOnce(Statement) -> Result<T, Error>,
    ) -> Result<T, PostgresError> {
        let mut begun = self.begun.lock().await;
        // Abandoned half-way, it is not committed either.
        let was_failed = self.is_failed.swap(true, Ordering::Relaxed);
        let outcome = match &*begun {
            Some(Ok(())) => match self.connection.prepared(text) {
                Some(statement) => run(statement).await,
                None => match self.connection.prepare(text).await {
                    Ok(statement) => run(statement).await,
                    Err(error) => Err(error),
                },
            },
            Some(Err(refusal)) => return Err(refusal.clone().into()),
            None => match self.begin_with(text, run).await? {
                Ok(outcome) => {
                    *begun = Some(Ok(()));
                    outcome
                }
                Err(refusal) => {
                    *begun = Some(Err(refusal.clone()));
                    return Err(refusal.into());
                }
            },
        };
        let output = self.connection.evicting(text, outcome)?;
        self.is_failed.store(was_failed, Ordering::Relaxed);
        Ok(output)
    }

    /// Sends `BEGIN`, the fence and the first statement, in this order and without waiting in between. The
    /// statement's outcome, unless the fence refused.
    async fn begin_with<T>(
        &self,
        text: &str,
        run: impl AsyncFnOnce(Statement) -> Result<T, Error>,
    ) -> Result<Result<Result<T, Error>, Refusal>, PostgresError> {
        let fence = match self.connection.prepared(FENCE) {
            Some(fence) => fence,
            None => match self.connection.prepare(FENCE).await {
                Ok(fence) => fence,
                // The shard never had a copy: no row lets anything pass.
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
                    let refusal = check_rows(self.routed, &[]).err();
                    return refusal.map_or(Err(error.into()), |refusal| Ok(Err(refusal)));
                }
                Err(error) => return Err(error.into()),
            },
        };
        let begin = self.begin(&fence);
        let Some(statement) = self.connection.prepared(text) else {
            let rows = begin.await?;
            return Ok(match check_rows(self.routed, &rows) {
                Err(refusal) => Err(refusal),
                Ok(()) => Ok(match self.connection.prepare(text).await {
                    Ok(statement) => run(statement).await,
                    Err(error) => Err(error),
                }),
            });
        };
        let (rows, outcome) = join(begin, run(statement)).await;
        Ok(check_rows(self.routed, &rows?).map(|()| outcome))
    }

    /// Begins, and reads the fence.
    async fn begin(&self, fence: &Statement) -> Result<Vec<FenceRow>, Error> {
        let begin = match self.routed.access() {
            Access::Write => BEGIN_WRITE,
            Access::Read => BEGIN_READ,
        };
        let map = self.routed.map().name().as_str();
        let mappings: Vec<String> =
            self.routed.mappings().iter().map(|routed| routed.mapping.to_string()).collect();
        let parameters: [&(dyn ToSql + Sync); 2] = [&map, &mappings];
        let client = &self.connection.client;
        let (begun, rows) = join(client.batch_execute(begin), client.query(fence, &parameters)).await;
        begun?;
        fence_rows(&self.connection.evicting(FENCE, rows)?)
    }

    /// Commits if the work succeeded, and all of its statements did.
    pub(super) async fn finish<T, E: From<PostgresError>>(
        self,
        outcome: Result<T, E>,
    ) -> Result<T, AttemptError<E>> {
        let client = &self.connection.client;
        let begun = self.begun.into_inner();
        if let Some(Err(refusal)) = begun {
            // The connection serves again only if nothing is open on it.
            let rolled_back = client.batch_execute("ROLLBACK").await;
            rolled_back.map_err(|error| AttemptError::Failed(PostgresError::from(error).into()))?;
            return Err(AttemptError::Refused(refusal));
        }
        let outcome = match outcome {
            Ok(_) if self.is_failed.load(Ordering::Relaxed) => Err(PostgresError::StatementFailed.into()),
            outcome => outcome,
        };
        let was_sent = begun.is_some() || self.is_failed.load(Ordering::Relaxed);
        let output = match outcome {
            Ok(output) => output,
            Err(error) if !was_sent => return Err(AttemptError::RolledBack(error)),
            // What the error was of may be under way still, and is before this on the connection.
            Err(error) => {
                return Err(match client.batch_execute("ROLLBACK").await {
                    Ok(()) => AttemptError::RolledBack(error),
                    Err(_) => AttemptError::Failed(error),
                });
            }
        };
        if begun.is_none() {
            // Nothing was sent.
            return Ok(output);
        }
        match client.batch_execute("COMMIT").await {
            Ok(()) => Ok(output),
            Err(error) if is_rolled_back(&error) => {
                Err(AttemptError::Failed(PostgresError::from(error).into()))
            }
            Err(error) => Err(AttemptError::MayBeDone(PostgresError::from(error).into())),
        }
    }
}

/// Whether the database says that the commit did nothing: a constraint or a conflict.
pub(super) fn is_rolled_back(error: &Error) -> bool {
    let is_certain = |code: &SqlState| *code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN;
    let is_of = |code: &SqlState| code.code().starts_with("23") || code.code().starts_with("40");
    error.code().is_some_and(|code| is_of(code) && is_certain(code))
}

fn fence_rows(rows: &[Row]) -> Result<Vec<FenceRow>, Error> {
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
}
