//! Snapshots that are pinned: scans of several requests read one moment, whatever is written, flushed,
//! compacted or split meanwhile.
//!
//! A pin keeps, for each range partition of its keys, the tree and the newest visible version of one moment:
//! while they are taken no range shows new rows. A range that was handed over stays, with its streams, as
//! long as a pin keeps it.
//!
//! What always holds: a pin that is gone is an error, [`PartitionError::SnapshotExpired`], never a read of
//! another moment. Pins are bounded in number, in time without use, in age, and in the memory that is there
//! only for them; a disk that is nearly full, or a write that found no space, ends them all. None outlives
//! the process. Which give way to others [`super::choose_pins`] says.

use crate::error::PartitionError;
use crate::heat::tally::Access;
use crate::key::{KeyRange, Span, take_before, take_from};
use crate::operation::{ObjectTable, Scan, ScanEnd};
use crate::range_partition::{PinnedView, RangePartition, WalkEnd};
use crate::snapshot_id::{SnapshotId, SnapshotOf};
use base::Clock;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pins of all accounts together.
pub const PINNED_SNAPSHOTS_MAX: usize = 16;
/// Pins of one account.
pub const PINNED_SNAPSHOTS_OF_ACCOUNT_MAX: usize = 4;
/// A pin that is not used for so long is gone.
pub const PINNED_SNAPSHOT_IDLE_MAX: Duration = Duration::from_secs(120);
/// One that no second scan has read yet, because the answer with its id may have been lost.
pub const PINNED_SNAPSHOT_FIRST_IDLE_MAX: Duration = Duration::from_secs(15);
/// A pin is gone after so long, whatever its use.
pub const PINNED_SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(3600);
/// This part of the memory tables' budget may be flushed and yet in memory for pins; some end for more.
pub(super) const MEMORY_DIVISOR: u64 = 4;
/// Pins are looked at so often.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The pins of a process.
#[derive(Default)]
pub(crate) struct PinnedSnapshots {
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) last_number: u64,
    /// The oldest first.
    pub(super) pins: BTreeMap<u64, Arc<Pin>>,
    /// The accounts of those that are being made, which have a place.
    pub(super) making: Vec<Bytes>,
    /// A task looks at them.
    pub(super) is_watched: bool,
}

/// One snapshot.
pub(super) struct Pin {
    pub(super) id: SnapshotId,
    /// What the keys of its account start with.
    pub(super) account: Bytes,
    pub(super) table: ObjectTable,
    pub(super) keys: KeyRange,
    /// In key order.
    pub(super) ranges: Vec<(Arc<RangePartition>, PinnedView)>,
    pub(super) began_at: Duration,
    pub(super) uses: Uses,
}

/// When a pin was used.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The end of the last use. Microseconds of monotonic time.
    used_at_us: AtomicU64,
    /// Scans so far, and those under way.
    scan_count: AtomicU64,
    under_way_count: AtomicU64,
}

impl Uses {
    /// None yet: a pin of now.
    pub(super) fn new(now: Duration) -> Self {
        Uses { used_at_us: AtomicU64::new(now.as_micros() as u64), ..Uses::default() }
    }
}

/// A pin while a scan reads it.
pub(super) struct PinInUse {
    pin: Arc<Pin>,
    clock: Arc<dyn Clock>,
}

impl PinInUse {
    pub(super) fn new(pin: Arc<Pin>, clock: Arc<dyn Clock>) -> Self {
        pin.uses.scan_count.fetch_add(1, Ordering::Relaxed);
        pin.uses.under_way_count.fetch_add(1, Ordering::Relaxed);
        PinInUse { pin, clock }
    }
}

impl std::ops::Deref for PinInUse {
    type Target = Pin;

    fn deref(&self) -> &Pin {
        &self.pin
    }
}

impl Drop for PinInUse {
    fn drop(&mut self) {
        let now_us = self.clock.monotonic().as_micros() as u64;
        self.pin.uses.used_at_us.fetch_max(now_us, Ordering::Relaxed);
        self.pin.uses.under_way_count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pin {
    /// Whether it is what a request names: of just these rows.
    pub(super) fn is(&self, snapshot: &SnapshotOf) -> bool {
        self.id == snapshot.id && self.table == snapshot.table && self.keys == snapshot.keys
    }

    pub(super) fn is_over(&self, now: Duration) -> bool {
        let uses = &self.uses;
        let used_at = match uses.under_way_count.load(Ordering::Relaxed) {
            0 => Duration::from_micros(uses.used_at_us.load(Ordering::Relaxed)),
            _ => now,
        };
        is_over(self.began_at, used_at, uses.scan_count.load(Ordering::Relaxed), now)
    }

    pub(super) fn covers(&self, span: &Span) -> bool {
        match span {
            Span::Point(key) => self.keys.contains(key.as_bytes()),
            Span::Range(range) => self.keys.covers(range),
        }
    }
}

/// Whether a pin that began and was last used then, by so many scans in all, has had its time.
fn is_over(began_at: Duration, used_at: Duration, scan_count: u64, now: Duration) -> bool {
    let idle_max = match scan_count {
        // The request that pins it reads a page of it.
        0 | 1 => PINNED_SNAPSHOT_FIRST_IDLE_MAX,
        _ => PINNED_SNAPSHOT_IDLE_MAX,
    };
    now.saturating_sub(used_at) >= idle_max || now.saturating_sub(began_at) >= PINNED_SNAPSHOT_AGE_MAX
}

impl PinnedSnapshots {
    /// Forgets them all.
    pub(super) fn clear(&self) {
        let pins = std::mem::take(&mut self.state.lock().pins);
        drop(pins);
    }
}

impl Pin {
    pub(super) async fn scan(
        &self,
        spans: Vec<Span>,
        scan: &mut dyn Scan,
    ) -> Result<ScanEnd, PartitionError> {
        let mut rest = VecDeque::from(spans);
        for (range, view) in &self.ranges {
            let here = take_before(&mut rest, range.range().end.as_ref());
            if here.is_empty() {
                continue;
            }
            here.iter().for_each(|span| range.load.note(span.start(), Access::Read));
            match range.scan_view(view, &here, scan).await? {
                WalkEnd::Through { wanted_from } => drop(take_before(&mut rest, Some(&wanted_from))),
                WalkEnd::Stopped(key) => return Ok(ScanEnd::More(key)),
            }
        }
        Ok(ScanEnd::Complete)
    }

    pub(super) async fn scan_backward(
        &self,
        spans: Vec<Span>,
        scan: &mut dyn Scan,
    ) -> Result<ScanEnd, PartitionError> {
        let mut rest = spans;
        for (range, view) in self.ranges.iter().rev() {
            let here = take_from(&mut rest, &range.range().start);
            if here.is_empty() {
                continue;
            }
            here.iter().for_each(|span| range.load.note(span.start(), Access::Read));
            if let WalkEnd::Stopped(key) = range.scan_backward(Some(view), &here, scan).await? {
                return Ok(ScanEnd::More(key));
            }
        }
        Ok(ScanEnd::Complete)
    }

    pub(super) fn held_tables(&self) -> Vec<(usize, u64)> {
        self.ranges.iter().flat_map(|(range, view)| range.tables_held_by(view)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_ends_unused_or_old() {
        let seconds = Duration::from_secs;
        for (began_at, used_at, scan_count, now, expected) in [
            (0, 0, 2, 119, false),
            (0, 0, 2, 120, true),
            (0, 0, 0, 14, false),
            (0, 0, 0, 15, true),
            (0, 4, 1, 18, false),
            (0, 4, 1, 19, true),
            (0, 3500, 2, 3599, false),
            (0, 3599, 2, 3600, true),
            (9, 9, 2, 0, false),
        ] {
            let is_over = is_over(seconds(began_at), seconds(used_at), scan_count, seconds(now));
            assert_eq!(is_over, expected, "{began_at} {used_at} {scan_count} {now}");
        }
    }
}
