//! Scans that passed over many tombstones: the reader notes them, the compactor does something about it.

use super::range_tree::RangeTree;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether there were any since tombstones were compacted last.
#[derive(Default)]
pub(super) struct SlowScans {
    are_noted: AtomicBool,
}

impl SlowScans {
    /// One was slow: tombstones in memory are flushed, those in checkpoints compacted, as far as that is
    /// worth it.
    pub(super) fn note(&self, core: &RangeTree) {
        self.are_noted.store(true, Ordering::Relaxed);
        core.freeze_scanned_tombstones();
        core.shared.maintenance.wake_compaction();
    }

    pub(super) fn are_noted(&self) -> bool {
        self.are_noted.load(Ordering::Relaxed)
    }

    /// What they passed over is being compacted, or is not worth it.
    pub(super) fn forget(&self) {
        self.are_noted.store(false, Ordering::Relaxed);
    }
}
