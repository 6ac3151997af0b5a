//! The one budget of the process for memory tables: those that take changes and those that wait for their
//! checkpoints, of all ranges together. With the block cache, which has a bound of its own, it makes up the
//! memory budget.
//!
//! What always holds: every memory table counts from its first row until its last reader is done with it.
//! From half of the budget on, tables are frozen early (`choose_flush` says which); from three quarters of it
//! on writers are slowed (`choose_write_delay` says how much), and at the whole of it they wait until a flush
//! has given something back. So memory follows the budget, not the number of ranges.

use crate::heat::range_heat::SketchPlaces;
use crate::memory::choose_flush::FlushFrom;
use crate::memory::write_pace::WritePace;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Bytes that memory tables may take together, and take.
pub(crate) struct MemoryBudget {
    size_bytes_max: u64,
    /// Groups of logs that a load should have to read for all tables; [`u64::MAX`]: however many there are.
    log_groups_max: u64,
    used_bytes: AtomicU64,
    /// Told when the budget is no longer full.
    freed: Notify,
    waiting: AtomicU64,
    waits: AtomicU64,
    waited_us: AtomicU64,
    /// How writers are slowed before they wait.
    pub(crate) pace: WritePace,
    /// Sketches of ranges' heat: a bound of their own, beside the budget.
    pub(crate) sketches: Arc<SketchPlaces>,
}

/// How writers fared under the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// Bytes of all memory tables.
    pub table_size_bytes: u64,
    /// Operations that waited because the budget was full.
    pub waits: u64,
    /// How long they waited, added up.
    pub waited_for: Duration,
    /// Operations that were delayed because flushes or compactions lagged.
    pub slowed: u64,
    /// How long they were delayed, added up.
    pub slowed_for: Duration,
}

impl MemoryBudget {
    /// A budget of `size_bytes_max`, for tables of `log_groups_max` groups.
    pub(crate) fn new(size_bytes_max: u64, log_groups_max: u64) -> Arc<Self> {
        let (used_bytes, waiting, waits, waited_us, pace) = Default::default();
        let (freed, sketches) = (Notify::new(), Arc::default());
        Arc::new(MemoryBudget {
            size_bytes_max,
            log_groups_max,
            used_bytes,
            freed,
            waiting,
            waits,
            waited_us,
            pace,
            sketches,
        })
    }

    /// From when on tables that take changes are frozen: the other half of the budget is for those that wait
    /// for their checkpoints.
    pub(crate) fn flush_from(&self) -> FlushFrom {
        let groups = if self.bounds_log_groups() { self.log_groups_max / 2 } else { u64::MAX };
        FlushFrom { bytes: self.size_bytes_max / 2, groups }
    }

    /// Whether groups of logs are bounded, and not their bytes alone.
    pub(crate) fn bounds_log_groups(&self) -> bool {
        self.log_groups_max != u64::MAX
    }

    /// Whether somebody should look if tables must be frozen.
    pub(crate) fn wants_flush(&self) -> bool {
        self.used_bytes.load(Ordering::Relaxed) >= self.flush_from().bytes
    }

    /// Whether writers must wait.
    pub(crate) fn is_full(&self) -> bool {
        self.used_bytes.load(Ordering::Relaxed) >= self.size_bytes_max
    }

    /// Bytes that tables take, and may take.
    pub(crate) fn used_of_max(&self) -> (u64, u64) {
        (self.used_bytes.load(Ordering::Relaxed), self.size_bytes_max)
    }

    /// Until the budget, full at present, is so no longer: to be made before looking whether it is.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// A writer begins to wait.
    pub(crate) fn begin_wait(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::info!(
                budget_bytes = self.size_bytes_max,
                "writers wait for memory tables to be flushed"
            );
        }
    }

    /// A writer has waited so long.
    pub(crate) fn end_wait(&self, waited_for: Duration) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.waited_us.fetch_add(waited_for.as_micros() as u64, Ordering::Relaxed);
    }

    /// How writers have fared so far.
    pub(crate) fn statistics(&self) -> MemoryStatistics {
        let (slowed, slowed_for) = self.pace.slowed();
        MemoryStatistics {
            table_size_bytes: self.used_bytes.load(Ordering::Relaxed),
            waits: self.waits.load(Ordering::Relaxed),
            waited_for: Duration::from_micros(self.waited_us.load(Ordering::Relaxed)),
            slowed,
            slowed_for,
        }
    }

    fn give_back(&self, size_bytes: u64) {
        let before = self.used_bytes.fetch_sub(size_bytes, Ordering::Relaxed);
        if before >= self.size_bytes_max && before - size_bytes < self.size_bytes_max {
            self.freed.notify_waiters();
        }
    }
}

/// What one memory table takes of the budget; freed when it is dropped.
pub(crate) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    size_bytes: AtomicU64,
}

impl MemoryShare {
    pub(crate) fn new(budget: &Arc<MemoryBudget>) -> Self {
        MemoryShare { budget: budget.clone(), size_bytes: AtomicU64::new(0) }
    }

    pub(crate) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self, size_bytes: u64) {
        self.size_bytes.fetch_add(size_bytes, Ordering::Relaxed);
        self.budget.used_bytes.fetch_add(size_bytes, Ordering::Relaxed);
    }

    /// Frees some of it; never more than is left after [`Self::release`].
    pub(crate) fn give_back(&self, size_bytes: u64) {
        let less = |held: u64| Some(held.saturating_sub(size_bytes));
        let held = self.size_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).unwrap_or(0);
        self.budget.give_back(held.min(size_bytes));
    }

    /// Frees all of it although the table is still there: it can't be flushed any more, and no writer shall
    /// wait for that.
    pub(crate) fn release(&self) {
        self.budget.give_back(self.size_bytes.swap(0, Ordering::Relaxed));
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn shares_add_up_and_come_back_whatever_happens_to_them() {
        let budget = MemoryBudget::new(100, u64::MAX);
        let (one, two) = (MemoryShare::new(&budget), MemoryShare::new(&budget));
        one.take(40);
        assert!(!budget.wants_flush() && !budget.is_full());
        two.take(70);
        assert!(budget.wants_flush() && budget.is_full());
        let mut freed = std::pin::pin!(budget.freed());
        one.give_back(5);
        assert!(budget.is_full() && freed.as_mut().now_or_never().is_none());
        drop(two);
        assert!(!budget.is_full() && freed.now_or_never().is_some(), "those who wait are told");
        one.release();
        one.give_back(10);
        drop(one);
        assert_eq!(budget.statistics().table_size_bytes, 0);
    }
}
