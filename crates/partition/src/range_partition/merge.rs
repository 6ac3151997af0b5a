//! Merging: several checkpoints become one, so that reads ask few and replaced rows give their space back.
//!
//! What always holds: only neighbours in age are merged; a deletion is dropped only when nothing older is left that
//! it could hide; a replaced checkpoint stays until its last reader is done.

use super::RangePartition;
use super::load::open_checkpoint;
use crate::checkpoint::Caching;
use crate::choose_merge::choose_merge;
use crate::error::PartitionError;
use crate::merge_cursor::MergeCursor;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl RangePartition {
    /// Merges the checkpoints that are worth it. False: none are.
    pub(crate) async fn merge(&self, closing: impl Fn() -> bool) -> Result<bool, PartitionError> {
        let _merging = self.merging.lock().await;
        let leaving = || self.leaving.load(Ordering::Acquire);
        if leaving() {
            return Ok(false);
        }
        match self.merge_some(|| closing() || leaving()).await {
            // Those who take over will choose for themselves.
            Err(_) if leaving() => Ok(false),
            other => other,
        }
    }

    async fn merge_some(&self, give_up: impl Fn() -> bool) -> Result<bool, PartitionError> {
        self.remove_retired().await?;
        let tree = self.tree();
        let sizes: Vec<u64> =
            tree.checkpoints.iter().map(|checkpoint| checkpoint.checkpoint.root.stored_bytes).collect();
        let Some(run) = choose_merge(&sizes) else { return Ok(false) };
        let merged = tree.checkpoints[run.clone()].to_vec();
        let numbers: Vec<u64> = merged.iter().map(|checkpoint| checkpoint.reference.number).collect();
        let keep_deleted = run.end < tree.checkpoints.len();
        drop(tree);
        let rows = MergeCursor::over_checkpoints(&merged, &self.range, Caching::Bypass).await?;
        let written = self.write_checkpoint(rows, keep_deleted, give_up).await?;
        let reference = self.reference(&written);
        let result = match reference {
            Some(reference) => Some(open_checkpoint(&self.shared, reference).await?),
            None => None,
        };
        let mut metadata = self.metadata.lock().await;
        let mut next = metadata.clone();
        // Flushes may have added newer checkpoints in the meantime; the merged ones are still neighbours.
        next.checkpoints = self.tree().with_merged(&numbers, result.clone()).references();
        self.adopt(&mut metadata, next, &written).await?;
        self.replace_tree(|tree| tree.with_merged(&numbers, result));
        drop(metadata);
        tracing::debug!(
            table = self.table.name(),
            count = merged.len(),
            bytes = sizes[run].iter().sum::<u64>(),
            "merged"
        );
        self.retired.lock().extend(merged);
        self.remove_retired().await?;
        Ok(true)
    }

    /// Removes the streams of replaced checkpoints that nobody reads any more.
    async fn remove_retired(&self) -> Result<(), PartitionError> {
        let free: Vec<_> = {
            let mut retired = self.retired.lock();
            let unread = |checkpoint: &mut Arc<crate::tree::TreeCheckpoint>| {
                Arc::strong_count(checkpoint) == 1 && Arc::strong_count(&checkpoint.checkpoint) == 1
            };
            retired.extract_if(.., unread).collect()
        };
        for checkpoint in free {
            self.shared.streams.delete(&self.names.checkpoint(checkpoint.reference.number)).await?;
        }
        Ok(())
    }
}
