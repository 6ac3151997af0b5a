//! How much of each checkpoint is rows of deleted containers, and which one is rewritten without them.
//!
//! Counting goes over the block indexes and all marks of the keys beside them, so it is done only after marks
//! were set, and not all the time while they are. What always holds: what is known is at most as old as that;
//! a checkpoint that was never counted counts as one without dead rows until the next count.

use crate::compaction::choose_rewrite::{Held, choose_rewrite};
use crate::compaction::choose_tombstone_compaction::Occasion;
use crate::error::PartitionError;
use crate::range_partition::compactor::Compactor;
use crate::range_partition::compactor::last_dead_count::LastCount;
use crate::tree::{Tree, TreeCheckpoint};
use std::ops::Range;
use std::sync::Arc;

impl Compactor {
    /// Bytes of dead rows of each checkpoint, roughly.
    pub(crate) async fn dead_bytes(
        &self,
        checkpoints: &[Arc<TreeCheckpoint>],
    ) -> Result<Vec<u64>, PartitionError> {
        let (shared, table) = (&self.core.shared, self.core.table);
        let (dead, clock) = (&shared.dead, &shared.clock);
        if dead.count_of(table) == 0 {
            return Ok(vec![0; checkpoints.len()]);
        }
        let (changes, begun) = (dead.changes_of(table), clock.monotonic());
        let may_count = self.last_dead_count.lock().is_over(begun);
        let (mut size_bytes, mut has_counted) = (Vec::with_capacity(checkpoints.len()), false);
        for checkpoint in checkpoints {
            size_bytes.push(match checkpoint.counted_dead_bytes() {
                Some(counted) if counted.changes == changes || !may_count => counted.size_bytes,
                None if !may_count => 0,
                _ => {
                    has_counted = true;
                    checkpoint.count_dead_bytes(|| dead.filter(table), changes).await?
                }
            });
        }
        if has_counted {
            let ended = clock.monotonic();
            *self.last_dead_count.lock() =
                LastCount { ended: Some(ended), took: ended.saturating_sub(begun) };
        }
        Ok(size_bytes)
    }

    /// The checkpoint that is worth rewriting without rows of deleted containers, if any, and how much of it
    /// is kept.
    pub(crate) async fn choose_rewrite(&self, tree: &Tree) -> Result<Option<(usize, u64)>, PartitionError> {
        if self.core.shared.dead.count_of(self.core.table) == 0 {
            return Ok(None);
        }
        let mut held = Vec::with_capacity(tree.checkpoints.len());
        for (checkpoint, dead_bytes) in tree.checkpoints.iter().zip(self.dead_bytes(&tree.checkpoints).await?)
        {
            held.push(Held { size_bytes: checkpoint.visible_bytes().await?, dead_bytes });
        }
        let kept_bytes = |index: usize| held[index].size_bytes.saturating_sub(held[index].dead_bytes);
        let stayed_count = self.core.shared.dead.stayed_count_of(self.core.table);
        Ok(choose_rewrite(&held, stayed_count, Occasion::Busy).map(|index| (index, kept_bytes(index))))
    }

    /// The one that is worth it when idle, as far as is known.
    pub(crate) fn idle_rewrite(&self, tree: &Tree) -> Option<Range<usize>> {
        if self.core.shared.dead.count_of(self.core.table) == 0 {
            return None;
        }
        let held: Vec<Held> = tree
            .checkpoints
            .iter()
            .map(|checkpoint| Held {
                size_bytes: checkpoint.checkpoint.root.stored_bytes,
                dead_bytes: checkpoint.counted_dead_bytes().map_or(0, |counted| counted.size_bytes),
            })
            .collect();
        choose_rewrite(&held, 0, Occasion::Idle).map(|index| index..index + 1)
    }
}
