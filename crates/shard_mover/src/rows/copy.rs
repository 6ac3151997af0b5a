//! Copies a table's rows from the source to the target.
//!
//! What always holds: memory holds two batches at most, the one that is written and the one that is read
//! meanwhile; a batch counts as copied once its write was acknowledged; a copy can begin again at any key
//! before, because a write puts rows in the place of those with the same keys.

use super::side::Side;
use crate::error::MoveError;
use base::BoxFuture;
use futures_util::future::join;
use shard_backend::{Batch, FenceHold, RowKey, TableSchema};
use shard_map::Epoch;

/// What counts batches that were copied.
pub(crate) trait CopySink: Send {
    /// A batch was copied.
    fn copied<'a>(&'a mut self, last: Option<&'a RowKey>, rows: u64) -> BoxFuture<'a, Result<(), MoveError>>;
}

/// Copies a table's rows after a key, or all. The sink is called after each batch with the last key that was
/// looked at, if more follow, and the batch's rows.
pub(crate) async fn copy(
    table: &TableSchema,
    source: &Side,
    target: &Side,
    claim: Epoch,
    after: Option<RowKey>,
    sink: &mut dyn CopySink,
) -> Result<(), MoveError> {
    let scan = async |after: Option<&RowKey>| -> Result<Batch, MoveError> {
        Ok(source.backend.scan(table, &source.shardlet, after, source.bounds).await?)
    };
    let mut batch = scan(after.as_ref()).await?;
    loop {
        let write = async {
            if batch.rows.is_empty() {
                return Ok(());
            }
            target.backend.write(table, &target.shardlet, FenceHold::Closed(claim), &batch.rows).await
        };
        let (written, following) = match &batch.next {
            None => (write.await, None),
            Some(next) => {
                let (written, following) = join(write, scan(Some(next))).await;
                (written, Some(following))
            }
        };
        written?;
        sink.copied(batch.next.as_ref(), batch.rows.len() as u64).await?;
        match following {
            Some(following) => batch = following?,
            None => return Ok(()),
        }
    }
}
