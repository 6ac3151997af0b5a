//! Merging when idle: similar checkpoints become one although there are few, because reads, and walks above
//! all, ask each of them.
//!
//! What always holds: nobody needs such a merge, so it is in nobody's way. It takes a small part of the free
//! space only, ends without a result as soon as a merge is due anywhere or space is scarce, and one that
//! failed is not tried again.

use crate::background::range_work::Ends;
use crate::compaction::choose_compaction::{choose_compaction, idle_count_min};
use crate::compaction::choose_tombstone_compaction::Occasion;
use crate::error::PartitionError;
use crate::range_partition::compactor::Compactor;
use crate::range_partition::compactor::{counts_of, ends_of, sizes_of};
use crate::range_partition::range_tree::write_checkpoint::First;
use crate::tree::Tree;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

impl Compactor {
    /// Whether there is something to merge when it is quiet.
    pub(crate) fn waits_until_idle(&self) -> bool {
        self.core.has_idle_tombstones() || self.choose_idle_compaction(&self.core.tree()).is_some()
    }

    /// Tombstones that are worth it come first: such a run has all that is newer.
    fn choose_idle_compaction(&self, tree: &Tree) -> Option<Range<usize>> {
        let counts = counts_of(&tree.checkpoints);
        let count_min = idle_count_min(self.core.shared.settings.compaction_count_min);
        self.run_with_tombstones(&tree.checkpoints, Occasion::Idle)
            .or_else(|| choose_compaction(&counts, self.rows_mostly(), count_min))
    }

    /// Merges similar checkpoints, if there are any and nothing more urgent is to be done. Returns whether it
    /// has.
    pub(crate) async fn compact_when_idle(&self, closing: Ends<'_>) -> bool {
        let _merging = self.core.gate.merging.lock().await;
        let gave_up = AtomicBool::new(false);
        let give_up = || {
            let gives_up = closing()
                || self.core.gate.leaving.load(Ordering::Acquire)
                || self.core.is_scarce()
                || self.core.shared.maintenance.most_checkpoints_to_compact() > 0;
            gave_up.fetch_or(gives_up, Ordering::Relaxed);
            gives_up
        };
        if give_up() {
            return false;
        }
        // They are flushed first; ten seconds later they are compacted with what is there already.
        if self.core.freeze_idle_tombstones() || !self.core.tree().frozen.is_empty() {
            return false;
        }
        let tree = self.core.tree();
        let Some(run) = self.choose_idle_compaction(&tree) else { return false };
        let merged = tree.checkpoints[run].to_vec();
        drop(tree);
        let ends = ends_of(&merged);
        let size_bytes = sizes_of(&merged).iter().sum();
        if *self.failed_when_idle.lock() == Some(ends)
            || !self.core.shared.streams.has_plenty_of_room_for(size_bytes).await
        {
            return false;
        }
        // None are due, or it gives up.
        let compactions_before = AtomicU64::new(0);
        let first = self.newer_than(&merged, &give_up, &compactions_before);
        let first = First::Interlude(&first);
        self.compacting_bytes.store(size_bytes, Ordering::Relaxed);
        let outcome = self.compact_run(merged, first, u64::MAX).await;
        self.compacting_bytes.store(0, Ordering::Relaxed);
        match outcome {
            Ok(()) => true,
            Err(_) if gave_up.into_inner() => false,
            Err(unwritten) => {
                let error = PartitionError::from(unwritten);
                let (table, id) = (self.core.table.name(), self.core.id);
                tracing::warn!(table, id, %error, "checkpoints can't be merged; reads ask each of them, and it is not tried again until others are worth a merge");
                *self.failed_when_idle.lock() = Some(ends);
                false
            }
        }
    }
}
