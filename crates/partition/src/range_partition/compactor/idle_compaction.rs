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
use crate::tree::{Tree, TreeCheckpoint};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Tombstones in memory are flushed when idle at most this often.
const IDLE_FREEZE_EVERY: Duration = Duration::from_secs(60);

impl Compactor {
    /// Whether there is something to merge when it is quiet.
    pub(crate) fn waits_until_idle(&self) -> bool {
        let has_tombstones = self.may_freeze_when_idle() && self.core.has_idle_tombstones();
        has_tombstones || self.idle_compactions(&self.core.tree()).next().is_some()
    }

    /// Those that are worth it, in the order in which they are tried: what brings tombstones to their rows,
    /// what drops rows of deleted containers, then what makes checkpoints fewer.
    fn idle_compactions(&self, tree: &Tree) -> impl Iterator<Item = Range<usize>> + use<> {
        let counts = counts_of(&tree.checkpoints);
        let count_min = idle_count_min(self.core.shared.settings.compaction_count_min);
        let for_tombstones = self.run_with_tombstones(&tree.checkpoints, Occasion::Idle);
        let similar = choose_compaction(&counts, self.rows_mostly(), count_min);
        for_tombstones.into_iter().chain(self.idle_rewrite(tree)).chain(similar)
    }

    /// Each such flush ends the quiet: beside a trickle of deletions compactions would never have their turn.
    fn may_freeze_when_idle(&self) -> bool {
        let now_ms = self.core.shared.clock.monotonic().as_millis() as u64;
        let last_ms = self.idle_freeze_at_ms.load(Ordering::Relaxed);
        last_ms == 0 || now_ms.saturating_sub(last_ms) >= IDLE_FREEZE_EVERY.as_millis() as u64
    }

    fn freeze_when_idle(&self) -> bool {
        let freezes = self.may_freeze_when_idle() && self.core.freeze_idle_tombstones();
        if freezes {
            let now_ms = self.core.shared.clock.monotonic().as_millis() as u64;
            self.idle_freeze_at_ms.store(now_ms.max(1), Ordering::Relaxed);
        }
        freezes
    }

    /// The first of them that did not fail before and that there is plenty of room for.
    async fn choose_idle_compaction(&self) -> Option<Vec<Arc<TreeCheckpoint>>> {
        let tree = self.core.tree();
        for run in self.idle_compactions(&tree) {
            let run = &tree.checkpoints[run];
            let size_bytes = sizes_of(run).iter().sum();
            if *self.failed_when_idle.lock() != Some(ends_of(run))
                && self.core.shared.streams.has_plenty_of_room_for(size_bytes).await
            {
                return Some(run.to_vec());
            }
        }
        None
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
        if self.freeze_when_idle() || !self.core.tree().frozen.is_empty() {
            return false;
        }
        let Some(merged) = self.choose_idle_compaction().await else { return false };
        let (ends, size_bytes) = (ends_of(&merged), sizes_of(&merged).iter().sum());
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
