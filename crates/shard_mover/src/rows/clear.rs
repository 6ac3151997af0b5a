//! Takes rows from the target whose keys the source has not: what a former copy or placement left.
//!
//! What always holds: a key that the source has is never deleted, even if its row differs, because the copy
//! writes over it. So a delete of a mover that was killed harms nothing if it arrives after the rows that
//! another mover of the same move copied. Memory holds a batch of each side and one of keys.

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
        if wanted.peek().await?.is_none_or(|next| next.encoded != found.encoded) {
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
