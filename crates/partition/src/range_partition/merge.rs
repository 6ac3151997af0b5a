//! Merging: several checkpoints become one, so that reads ask few and replaced rows give their space back; or one is
//! written anew without the rows of deleted containers.
//!
//! What always holds: only neighbours in age are merged; a deletion is dropped only when nothing older is left that
//! it could hide; a replaced checkpoint stays until its last reader is done.

use super::RangePartition;
use super::load::open_checkpoint;
use crate::checkpoint::Caching;
use crate::choose_merge::choose_merge;
use crate::choose_rewrite::{Held, choose_rewrite};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::merge_cursor::MergeCursor;
use crate::operation::RowVersion;
use crate::tree::Tree;
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
        let run = match choose_merge(&sizes, self.shared.settings.merge_count_min) {
            Some(run) => run,
            None => match self.choose_rewrite(&tree).await? {
                Some(index) => index..index + 1,
                None => return Ok(false),
            },
        };
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

    /// The checkpoint that is worth rewriting without rows of deleted containers, if any.
    async fn choose_rewrite(&self, tree: &Tree) -> Result<Option<usize>, PartitionError> {
        let dead = self.shared.dead.of_table(self.table);
        if dead.is_empty() {
            return Ok(None);
        }
        let mut held = Vec::with_capacity(tree.checkpoints.len());
        for checkpoint in &tree.checkpoints {
            let size_bytes = checkpoint.visible_bytes().await?;
            held.push(Held { size_bytes, dead_bytes: checkpoint.dead_bytes(&dead).await? });
        }
        Ok(choose_rewrite(&held, dead.len()))
    }

    /// Whether it holds rows of `keys`, deleted ones included. Those that are only in memory are on their way to a
    /// checkpoint afterwards.
    pub(crate) async fn holds_any(&self, keys: &KeyRange) -> Result<bool, PartitionError> {
        let keys = keys.intersect(&self.range);
        let tree = self.tree();
        let newest = RowVersion(u64::MAX);
        if MergeCursor::over_tree(&tree, &keys, newest, Caching::Keep).await?.row().is_none() {
            return Ok(false);
        }
        let mut active = false;
        tree.active.scan(&keys, newest, |_, _, _| {
            active = true;
            false
        });
        if active {
            self.freeze_active();
            self.shared.maintenance.wake_flush();
        }
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
