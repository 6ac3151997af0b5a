//! What a backend does with the rows of a shard: all that a move needs of it.
//!
//! What an implementation must hold:
//!
//! * a scan gives the rows of a shardlet in the order of [`TableSchema::row_key`], each once, in batches of
//!   bounded size; rows that are there from its first batch to its last are in it;
//! * a write puts rows in the place of those with the same keys, so that it can be done twice; a delete of a
//!   row that is not there is done;
//! * if [`Capabilities::transactions`] is the shard, a batch is written as a whole or not; else an error may
//!   leave a part of it. What was acknowledged is durable;
//! * if [`Capabilities::fence`] holds until commit, [`FenceHold`] is true from before the first change until
//!   the commit; else the caller sees to it (`capability/choose_move.rs`);
//! * an error says whether anything may be done.

use super::batch::{Batch, BatchBounds};
use super::error::BackendError;
use super::fence::FenceHold;
use super::shardlet::Shardlet;
use crate::capability::capabilities::Capabilities;
use crate::limits::BATCH_ROWS_MAX;
use crate::schema::drift::ActualSchema;
use crate::schema::table::TableSchema;
use crate::value::row::{Row, RowKey};
use base::BoxFuture;
use shard_map::Epoch;

/// A shard's rows.
pub trait Backend: Send + Sync + 'static {
    /// Where it is, for messages: without secrets.
    fn place(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// The tables that are there.
    fn actual_schema(&self) -> BoxFuture<'_, Result<ActualSchema, BackendError>>;

    /// Claims a mapping for the writes of one move: those of lower claims fail from here on. A claim that is
    /// lower than the stored one, or was released, is refused; an equal one is fine. It waits for
    /// transactions that hold it. A shardlet without a mapping has no claims.
    fn claim<'a>(&'a self, shardlet: &'a Shardlet, claim: Epoch) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Ends a claim: writes by it fail from here on, and it can't be claimed again. Without effect if another
    /// claim is stored, or none. It waits for transactions that hold it.
    fn release<'a>(&'a self, shardlet: &'a Shardlet, claim: Epoch)
    -> BoxFuture<'a, Result<(), BackendError>>;

    /// The rows of a shardlet after a key, or from the first one on.
    fn scan<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        after: Option<&'a RowKey>,
        bounds: BatchBounds,
    ) -> BoxFuture<'a, Result<Batch, BackendError>>;

    /// How many rows of a shardlet there are, at one instant.
    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>>;

    /// Writes rows of a shardlet, at most [`BATCH_ROWS_MAX`]. Of several rows of one key the last one stays.
    fn write<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        rows: &'a [Row],
    ) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Deletes rows of a shardlet, at most [`BATCH_ROWS_MAX`].
    fn delete<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        keys: &'a [RowKey],
    ) -> BoxFuture<'a, Result<(), BackendError>>;
}

/// Whether a batch has not too many rows.
pub(crate) fn check_count(place: &str, count: usize) -> Result<(), BackendError> {
    match count <= BATCH_ROWS_MAX {
        true => Ok(()),
        false => Err(BackendError::Batch { place: place.to_owned(), count, max: BATCH_ROWS_MAX }),
    }
}
