//! Takes rows from the target that are not on the source as they are: what a former copy left, or a table's
//! unique index would refuse beside the source's rows.
//!
//! What always holds: a row that is equal on both sides stays; memory holds a batch of each side and one of
//! keys.

use super::reader::Reader;
use super::side::Side;
use crate::error::MoveError;
use shard_backend::{BATCH_ROWS_MAX, RowKey, TableSchema};
use shard_map::Epoch;

/// Deletes the target's rows that the source has not; how many were looked at.
pub(crate) async fn clear(
    table: &TableSchema,
    source: &Side,
    target: &Side,
    claim: Epoch,
) -> Result<u64, MoveError> {
    let (mut wanted, mut there) = (Reader::new(source, table), Reader::new(target, table));
    let mut stale: Vec<RowKey> = Vec::new();
    let mut looked_at = 0;
    while let Some(found) = there.next().await? {
        looked_at += 1;
        while wanted.peek().await?.is_some_and(|next| next.encoded < found.encoded) {
            wanted.next().await?;
        }
        let is_same =
            wanted.peek().await?.is_some_and(|next| next.encoded == found.encoded && next.row == found.row);
        if !is_same {
            stale.push(found.key);
        }
        if stale.len() == BATCH_ROWS_MAX {
            target.delete(table, claim, &stale).await?;
            stale.clear();
        }
    }
    target.delete(table, claim, &stale).await?;
    Ok(looked_at)
}
