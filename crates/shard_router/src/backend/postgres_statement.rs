//! One statement of a Postgres shard as a whole transaction, behind the shard's fence, in one round trip.
//!
//! `BEGIN`, the fence, the statement and `COMMIT` go out together. So the fence can't be looked at in
//! between: here it is a statement that fails if it refuses, and after a statement that failed Postgres fails
//! those behind it and takes `COMMIT` for `ROLLBACK`. Which refusal it is is asked the long way, as a
//! transaction ([`PostgresTransaction`]).
//!
//! What always holds: as there; what may have been committed is not said to have failed.

use super::fence_rows::check_rows;
use super::postgres_connection::{BEGIN_WRITE, PostgresConnection};
use super::postgres_error::{PostgresError, PostgresParameters};
use super::postgres_transaction::{PostgresTransaction, is_rolled_back};
use crate::fenced::routed::Routed;
use crate::fenced::work::AttemptError;
use futures_util::future::join4;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Statement};

/// Fails with a division by zero unless the mapping's row is there, of this epoch, and writes may pass.
const HOLDS: &str = "SELECT 1 / count(*)::int FROM larimar_fence
    WHERE map = $1 AND mapping = $2 AND since = $3::bigint AND state = 'online'";

type Attempted = Result<u64, AttemptError<PostgresError>>;

/// Runs it; how many rows it changed.
pub(super) async fn run(
    connection: &PostgresConnection,
    routed: &Routed,
    text: &str,
    parameters: PostgresParameters<'_>,
) -> Attempted {
    let [mapping] = routed.mappings() else {
        return run_as_transaction(connection, routed, text, parameters).await;
    };
    let fence = match prepared(connection, HOLDS).await {
        Ok(fence) => fence,
        // The shard never had a copy: no row lets anything pass.
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            let refusal = check_rows(routed, &[]).err();
            return Err(refusal.map_or_else(|| unsent(connection, error), AttemptError::Refused));
        }
        Err(error) => return Err(unsent(connection, error)),
    };
    let statement = prepared(connection, text).await.map_err(|error| unsent(connection, error))?;
    let (map, id) = (routed.map().name().as_str(), mapping.mapping.to_string());
    let since = mapping.since.0.cast_signed();
    let holds: [&(dyn ToSql + Sync); 3] = [&map, &id, &since];
    let client = &connection.client;
    let (begun, held, outcome, committed) = join4(
        client.batch_execute(BEGIN_WRITE),
        client.execute(&fence, &holds),
        client.execute(&statement, parameters),
        client.batch_execute("COMMIT"),
    )
    .await;
    let outcome = connection.evicting(text, outcome);
    if let Err(error) = committed {
        return Err(match outcome {
            // The database said so, and rolled back.
            Err(failed) if failed.as_db_error().is_some() => AttemptError::Failed(failed.into()),
            _ if is_rolled_back(&error) => AttemptError::Failed(error.into()),
            _ => AttemptError::MayBeDone(error.into()),
        });
    }
    // Postgres rolled back if it said that one of them failed.
    if let Err(error) = begun {
        return Err(AttemptError::Failed(error.into()));
    }
    match connection.evicting(HOLDS, held) {
        Ok(_) => outcome.map_err(|error| {
            match is_of_database(&error) || is_unsent(&error, &statement, parameters) {
                true => AttemptError::RolledBack(error.into()),
                false => AttemptError::MayBeDone(error.into()),
            }
        }),
        Err(error) if error.code() == Some(&SqlState::DIVISION_BY_ZERO) => {
            run_as_transaction(connection, routed, text, parameters).await
        }
        Err(error) if is_of_database(&error) => Err(AttemptError::RolledBack(error.into())),
        Err(error) => Err(AttemptError::MayBeDone(error.into())),
    }
}

fn is_of_database(error: &Error) -> bool {
    error.as_db_error().is_some()
}

/// Whether the driver failed before it had sent the statement: at its parameters, of which an error has a
/// cause unless they are too few or too many. What it can't read of an answer, as that of `COPY`, has none.
fn is_unsent(error: &Error, statement: &Statement, parameters: PostgresParameters<'_>) -> bool {
    parameters.len() != statement.params().len() || std::error::Error::source(error).is_some()
}

async fn run_as_transaction(
    connection: &PostgresConnection,
    routed: &Routed,
    text: &str,
    parameters: PostgresParameters<'_>,
) -> Attempted {
    let transaction = PostgresTransaction::new(connection, routed);
    let outcome = transaction.execute(text, parameters).await;
    transaction.finish(outcome).await
}

async fn prepared(connection: &PostgresConnection, text: &str) -> Result<Statement, Error> {
    match connection.prepared(text) {
        Some(statement) => Ok(statement),
        None => connection.prepare(text).await,
    }
}

/// Nothing but a statement to prepare was sent.
fn unsent(connection: &PostgresConnection, error: Error) -> AttemptError<PostgresError> {
    match connection.client.is_closed() {
        true => AttemptError::Failed(error.into()),
        false => AttemptError::RolledBack(error.into()),
    }
}
