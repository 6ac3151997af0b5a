//! A side of a move: a shard's rows, and how a mover may write them.

use crate::error::MoveError;
use shard_backend::{Backend, BatchBounds, FenceHold, RowKey, Shardlet, TableSchema};
use shard_map::{Epoch, Name};
use std::sync::Arc;

/// A side of a move.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) shard: Name,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) shardlet: Shardlet,
    pub(crate) bounds: BatchBounds,
}

impl Side {
    /// Deletes rows under a claim.
    pub(crate) async fn delete(
        &self,
        table: &TableSchema,
        claim: Epoch,
        keys: &[RowKey],
    ) -> Result<(), MoveError> {
        if keys.is_empty() {
            return Ok(());
        }
        Ok(self.backend.delete(table, &self.shardlet, FenceHold::Closed(claim), keys).await?)
    }
}
