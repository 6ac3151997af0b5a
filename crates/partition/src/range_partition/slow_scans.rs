//! Scans that passed over many tombstones: the reader notes them, the compactor does something about it.
//!
//! What always holds: however many scans are slow, the compactor is woken for them once a second at most; and
//! what is noted counts for a minute, so that a slow scan of long ago asks for nothing.

use super::range_tree::RangeTree;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A slow scan is noted if none was for so long.
const NOTED_EVERY: Duration = Duration::from_secs(1);
/// It counts for so long.
const COUNTS_FOR: Duration = Duration::from_secs(60);

/// When there was one last, if that counts still.
#[derive(Default)]
pub(super) struct SlowScans {
    /// Milliseconds of monotonic time and one more; 0: none, or their tombstones are being compacted.
    noted_at_ms: AtomicU64,
}

impl SlowScans {
    /// One was slow: tombstones in memory are flushed, those in checkpoints compacted, as far as that is
    /// worth it.
    pub(super) fn note(&self, core: &RangeTree) {
        core.freeze_scanned_tombstones();
        let now = core.shared.clock.monotonic();
        if self.noted_for(now).is_none_or(|noted_for| noted_for >= NOTED_EVERY) {
            self.noted_at_ms.store(now.as_millis() as u64 + 1, Ordering::Relaxed);
            core.shared.maintenance.wake_compaction();
        }
    }

    /// Whether there was one that counts at `now`.
    pub(super) fn are_noted(&self, now: Duration) -> bool {
        self.noted_for(now).is_some_and(|noted_for| noted_for < COUNTS_FOR)
    }

    /// What they passed over is being compacted.
    pub(super) fn forget(&self) {
        self.noted_at_ms.store(0, Ordering::Relaxed);
    }

    fn noted_for(&self, now: Duration) -> Option<Duration> {
        let noted_at_ms = self.noted_at_ms.load(Ordering::Relaxed).checked_sub(1)?;
        Some(now.saturating_sub(Duration::from_millis(noted_at_ms)))
    }
}
