//! Reads: gets and scans over a snapshot, beside the writers and without waiting for them.

use super::RangePartition;
use crate::checkpoint::{Caching, HashedKey};
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey};
use crate::memory_table::Found;
use crate::merge_cursor::MergeCursor;
use crate::operation::{Row, RowRef, RowVersion, Scan, ScanEnd, Visit};
use crate::tree::Tree;
use bytes::Bytes;

/// A walk lets other work of its thread go on each time it has gone over this many rows: a page over a whole table
/// must not hold up the group commit.
pub(super) const WALK_YIELD_ROW_COUNT: u64 = 128;

impl RangePartition {
    /// The row at `key`, if it is there.
    pub(crate) async fn get(&self, key: &RowKey) -> Result<Option<Row>, PartitionError> {
        let (tree, visible) = self.snapshot();
        let hashed = HashedKey::new(key.as_bytes());
        let found = match find_in_memory(&tree, hashed, visible) {
            Some(found) => Some(found),
            None => find_in_checkpoints(&tree, hashed).await?,
        };
        Ok(found.and_then(|found| to_row(key, found)))
    }

    /// Shows the rows of `range`, as far as they lie here, from one snapshot.
    pub(crate) async fn scan<S: Scan>(
        &self,
        range: &KeyRange,
        scan: &mut S,
    ) -> Result<ScanEnd, PartitionError> {
        let (tree, visible) = self.snapshot();
        let range = range.intersect(&self.range);
        let mut cursor = MergeCursor::over_tree(&tree, &range, visible, Caching::Keep).await?;
        let mut walked: u64 = 0;
        while let Some(row) = cursor.row() {
            if let Some(value) = row.value
                && scan.visit(RowRef { key: row.key, version: row.version, value }) == Visit::StopBefore
            {
                return Ok(ScanEnd::More(Bytes::copy_from_slice(row.key)));
            }
            cursor.step().await?;
            walked += 1;
            if walked.is_multiple_of(WALK_YIELD_ROW_COUNT) {
                tokio::task::yield_now().await;
            }
        }
        Ok(ScanEnd::Complete)
    }
}

/// A found change as a row; `None` if it is a deletion.
pub(super) fn to_row(key: &RowKey, found: Found) -> Option<Row> {
    found.value.map(|value| Row { key: key.clone(), version: found.version, value })
}

/// The newest change not after `at` that a memory table knows.
pub(super) fn find_in_memory(tree: &Tree, key: HashedKey<'_>, at: RowVersion) -> Option<Found> {
    tree.memory_tables().find_map(|memory| memory.get(key, at))
}

/// The newest change that a checkpoint knows.
pub(super) async fn find_in_checkpoints(
    tree: &Tree,
    key: HashedKey<'_>,
) -> Result<Option<Found>, PartitionError> {
    for checkpoint in &tree.checkpoints {
        if checkpoint.shows(key.bytes)
            && let Some(row) = checkpoint.checkpoint.get(key).await?
        {
            return Ok(Some(Found { version: row.version, value: row.value }));
        }
    }
    Ok(None)
}
