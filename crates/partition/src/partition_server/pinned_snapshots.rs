//! Snapshots that are pinned: scans of several requests read one moment, whatever is written, flushed,
//! compacted or split meanwhile.
//!
//! A pin keeps, for each range partition of its keys, the tree and the newest visible version of one moment:
//! while they are taken no range shows new rows. A range that was handed over stays, with its streams, as
//! long as a pin keeps it.
//!
//! What always holds: a pin that is gone is an error, [`PartitionError::SnapshotExpired`], never a read of
//! another moment. Pins are bounded in number, in time without use, in age, and in the memory that is there
//! only for them; a full disk ends them all. None outlives the process.

use crate::error::PartitionError;
use crate::heat::tally::Access;
use crate::key::{KeyRange, Span, take_before, take_from};
use crate::operation::{ObjectTable, Scan, ScanEnd};
use crate::range_partition::{PinnedView, RangePartition, WalkEnd};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pins of all accounts together.
pub const PINNED_SNAPSHOTS_MAX: usize = 16;
/// Pins of one account.
pub const PINNED_SNAPSHOTS_OF_ACCOUNT_MAX: usize = 4;
/// A pin that is not used for so long is gone.
pub const PINNED_SNAPSHOT_IDLE_MAX: Duration = Duration::from_secs(120);
/// A pin is gone after so long, whatever its use.
pub const PINNED_SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(3600);
/// This part of the memory tables' budget may be flushed and yet in memory for pins; the oldest end for more.
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
    /// A task looks at them.
    pub(super) is_watched: bool,
}

/// One snapshot.
pub(super) struct Pin {
    /// What the keys of its account start with.
    pub(super) account: Bytes,
    pub(super) table: ObjectTable,
    pub(super) keys: KeyRange,
    /// In key order.
    pub(super) ranges: Vec<(Arc<RangePartition>, PinnedView)>,
    pub(super) began_at: Duration,
    /// Microseconds of monotonic time.
    pub(super) used_at_us: AtomicU64,
}

impl Pin {
    pub(super) fn note_use(&self, now: Duration) {
        self.used_at_us.fetch_max(now.as_micros() as u64, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self, now: Duration) -> bool {
        is_over(self.began_at, Duration::from_micros(self.used_at_us.load(Ordering::Relaxed)), now)
    }

    pub(super) fn covers(&self, table: ObjectTable, span: &Span) -> bool {
        let covers = match span {
            Span::Point(key) => self.keys.contains(key.as_bytes()),
            Span::Range(range) => self.keys.covers(range),
        };
        self.table == table && covers
    }
}

/// Whether a pin that began and was last used then has had its time.
fn is_over(began_at: Duration, used_at: Duration, now: Duration) -> bool {
    now.saturating_sub(used_at) >= PINNED_SNAPSHOT_IDLE_MAX
        || now.saturating_sub(began_at) >= PINNED_SNAPSHOT_AGE_MAX
}

/// How many pins must end, the oldest first, so that the rest of them holds no more than `size_bytes_max`. Of
/// each the memory that it holds, by address: what several hold counts once.
pub(super) fn choose_ended(held: &[Vec<(usize, u64)>], size_bytes_max: u64) -> usize {
    let held_from = |first: usize| {
        let distinct: BTreeSet<(usize, u64)> = held[first..].iter().flatten().copied().collect();
        distinct.iter().map(|(_, size_bytes)| size_bytes).sum::<u64>()
    };
    (0..held.len()).find(|first| held_from(*first) <= size_bytes_max).unwrap_or(held.len())
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
        for (began_at, used_at, now, expected) in [
            (0, 0, 119, false),
            (0, 0, 120, true),
            (0, 3500, 3599, false),
            (0, 3599, 3600, true),
            (9, 9, 0, false),
        ] {
            let is_over = is_over(seconds(began_at), seconds(used_at), seconds(now));
            assert_eq!(is_over, expected, "{began_at} {used_at} {now}");
        }
    }

    #[test]
    fn the_oldest_end_until_the_rest_has_room() {
        // Two tables, of which one is held twice.
        let (a, b, c) = ((1, 10), (2, 20), (3, 5));
        for (held, size_bytes_max, expected) in [
            (vec![], 0, 0),
            (vec![vec![]], 0, 0),
            (vec![vec![a]], 10, 0),
            (vec![vec![a]], 9, 1),
            (vec![vec![a], vec![a]], 10, 0),
            (vec![vec![a, b], vec![a]], 30, 0),
            (vec![vec![a, b], vec![a]], 29, 1),
            (vec![vec![a], vec![a, b], vec![c]], 29, 2),
            (vec![vec![a], vec![b], vec![c]], 4, 3),
        ] {
            assert_eq!(choose_ended(&held, size_bytes_max), expected, "{held:?} {size_bytes_max}");
        }
    }
}
