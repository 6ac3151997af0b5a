//! Tombstones on their way into a checkpoint: which of them are kept.
//!
//! What always holds: a tombstone is dropped only if nothing older can have its row.

use super::RangeTree;
use crate::checkpoint::HashedKey;
use crate::settings::PlantedFault;
use crate::tree::Tree;
use crate::tree::checkpoints::Checkpoints;
use std::sync::atomic::Ordering;

/// A memory table with so many tombstones is flushed before it is full if scans pass over them.
const SCANNED_COUNT_MIN: u64 = 8192;
/// And if there is nothing else to do. A scan passes over so many in a fraction of a millisecond.
const IDLE_COUNT_MIN: u64 = 512;

/// Which tombstones a checkpoint gets: those of rows that an older one may have.
#[derive(Default)]
pub(crate) struct Tombstones {
    older: Checkpoints,
}

impl Tombstones {
    /// None: nothing older is left, or it has lost the rows.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Whether the tombstone of the row at `key` is kept. It reads nothing: a filter that is not in memory
    /// may have the key.
    pub(crate) fn keeps(&self, key: &[u8]) -> bool {
        self.older.next_that_may_have(HashedKey::new(key), 0).is_some()
    }
}

impl RangeTree {
    /// Of rows that one of these may have, which are all that is older.
    pub(crate) fn tombstones_over(&self, older: Checkpoints) -> Tombstones {
        if self.shared.settings.planted_fault == Some(PlantedFault::DroppedTombstones) {
            return Tombstones::none();
        }
        Tombstones { older }
    }

    /// Scans pass over many tombstones: freezes the table that takes changes if it has a fair part of them.
    pub(crate) fn freeze_scanned_tombstones(&self) {
        self.freeze_tombstones(SCANNED_COUNT_MIN);
    }

    /// Freezes the table that takes changes if it has some tombstones. Returns whether it did.
    pub(crate) fn freeze_idle_tombstones(&self) -> bool {
        self.freeze_tombstones(IDLE_COUNT_MIN)
    }

    /// Whether there are some that wait for nothing else to be done.
    pub(crate) fn has_idle_tombstones(&self) -> bool {
        self.has_tombstones(&self.tree.load(), IDLE_COUNT_MIN)
    }

    fn freeze_tombstones(&self, count_min: u64) -> bool {
        // Most scans end here, without the lock. With it, the table may be another one by now.
        let freezes = self.has_tombstones(&self.tree.load(), count_min)
            && self.freeze_active_if(|tree| self.has_tombstones(tree, count_min));
        if freezes {
            self.shared.maintenance.wake_flush();
        }
        freezes
    }

    /// Whether the table that takes changes has so many, and may be frozen for that: no other one waits for
    /// its flush, or writers would, and the disk has room for it.
    fn has_tombstones(&self, tree: &Tree, count_min: u64) -> bool {
        self.shared.settings.planted_fault != Some(PlantedFault::StuckTombstones)
            && tree.frozen.is_empty()
            && tree.active.deleted_count() >= count_min
            && !self.is_scarce()
            && !self.gate.keeps_memory.load(Ordering::Acquire)
    }
}
