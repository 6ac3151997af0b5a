//! Why statements of a Postgres shard fail, and what they are given.

use shard_store::Refusal;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

/// Parameters of a statement.
pub type PostgresParameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The database refused it, or its connection broke.
    #[error("{}", shown(.0))]
    Statement(#[from] Error),
    /// The fence refused the transaction: the router sees to it.
    #[error(transparent)]
    Fence(#[from] Refusal),
    /// The work succeeded though a statement of it failed.
    #[error("a statement of the transaction failed, so nothing of it was done; return its error")]
    StatementFailed,
}

/// With what the database says, which the driver's own text leaves out.
pub(super) fn shown(error: &Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned())
}
