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

use super::server::PartitionServer;
use crate::error::PartitionError;
use crate::heat::tally::Access;
use crate::key::{KeyRange, Span, account_prefix, are_in_order, take_before};
use crate::operation::{ObjectTable, Scan, ScanEnd};
use crate::range_partition::{PinnedView, RangePartition, WalkEnd};
use crate::snapshot_id::SnapshotId;
use base::BoxFuture;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
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
const MEMORY_DIVISOR: u64 = 4;
/// Pins are looked at so often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The pins of a process.
#[derive(Default)]
pub(crate) struct PinnedSnapshots {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_number: u64,
    /// The oldest first.
    pins: BTreeMap<u64, Arc<Pin>>,
    /// A task looks at them.
    is_watched: bool,
}

/// One snapshot.
struct Pin {
    /// What the keys of its account start with.
    account: Bytes,
    table: ObjectTable,
    keys: KeyRange,
    /// In key order.
    ranges: Vec<(Arc<RangePartition>, PinnedView)>,
    began_at: Duration,
    /// Microseconds of monotonic time.
    used_at_us: AtomicU64,
}

impl Pin {
    fn note_use(&self, now: Duration) {
        self.used_at_us.fetch_max(now.as_micros() as u64, Ordering::Relaxed);
    }

    fn is_over(&self, now: Duration) -> bool {
        is_over(self.began_at, Duration::from_micros(self.used_at_us.load(Ordering::Relaxed)), now)
    }

    fn covers(&self, table: ObjectTable, span: &Span) -> bool {
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
fn choose_ended(held: &[Vec<(usize, u64)>], size_bytes_max: u64) -> usize {
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

impl PartitionServer {
    /// Pins a snapshot of the rows of `keys`, which are of one account.
    pub(crate) fn pin(
        self: &Arc<Self>,
        table: ObjectTable,
        keys: KeyRange,
    ) -> Result<SnapshotId, PartitionError> {
        let now = self.shared.clock.monotonic();
        let account = account_prefix(&keys.start).ok_or(PartitionError::Operation("keys of no account"))?;
        let account = Bytes::copy_from_slice(account);
        if self.closing.load(Ordering::Acquire) {
            return Err(PartitionError::Unavailable("the server is stopping".to_owned()));
        }
        if self.shared.streams.is_scarce() {
            return Err(PartitionError::DiskFull);
        }
        self.end_old_pins(now);
        let ranges = self.pin_views(table, &keys)?;
        // What was shown while another process took over is not the newest.
        ranges.iter().try_for_each(|(range, _)| range.check_lease())?;
        let used_at_us = AtomicU64::new(now.as_micros() as u64);
        let pin = Arc::new(Pin { account, table, keys, ranges, began_at: now, used_at_us });
        let (number, starts_watch) = {
            let mut state = self.pins.state.lock();
            let of_account = state.pins.values().filter(|other| other.account == pin.account).count();
            if of_account >= PINNED_SNAPSHOTS_OF_ACCOUNT_MAX || state.pins.len() >= PINNED_SNAPSHOTS_MAX {
                return Err(PartitionError::TooManySnapshots);
            }
            state.last_number += 1;
            let number = state.last_number;
            state.pins.insert(number, pin);
            (number, !std::mem::replace(&mut state.is_watched, true))
        };
        if starts_watch {
            let (server, clock) = (Arc::downgrade(self), self.shared.clock.clone());
            self.shared.spawner.spawn("pinned-snapshots", Box::pin(watch(server, clock)));
        }
        Ok(SnapshotId { life: self.shared.life.incarnation.0, number })
    }

    /// The ranges that have rows of `keys`, all as they are at one moment.
    fn pin_views(
        &self,
        table: ObjectTable,
        keys: &KeyRange,
    ) -> Result<Vec<(Arc<RangePartition>, PinnedView)>, PartitionError> {
        // Until it is dropped no range shows rows, so none is newer here than another.
        let _moment = self.shared.shown.write();
        let routes = self.routes.load();
        let owners = routes.owners(table).filter(|owner| !owner.range().intersect(keys).is_empty());
        let pinned = owners.map(|owner| {
            let range = owner.served()?;
            Ok((range.clone(), range.pin_view()))
        });
        pinned.collect()
    }

    /// Shows the rows of `spans`, which are in order, as they were when the snapshot was pinned.
    pub(crate) fn scan_pinned<'a>(
        &'a self,
        id: SnapshotId,
        table: ObjectTable,
        spans: Vec<Span>,
        scan: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanEnd, PartitionError>> {
        Box::pin(async move {
            if !are_in_order(&spans) {
                return Err(PartitionError::Operation("spans that are not in order"));
            }
            let clock = &self.shared.clock;
            let pin = self.find_pin(id, clock.monotonic()).ok_or(PartitionError::SnapshotExpired)?;
            if !spans.iter().all(|span| pin.covers(table, span)) {
                return Err(PartitionError::SnapshotExpired);
            }
            let end = pin.scan(spans, scan).await;
            pin.note_use(clock.monotonic());
            end
        })
    }

    fn find_pin(&self, id: SnapshotId, now: Duration) -> Option<Arc<Pin>> {
        if id.life != self.shared.life.incarnation.0 {
            return None;
        }
        let pin = self.pins.state.lock().pins.get(&id.number).cloned()?;
        if pin.is_over(now) {
            return None;
        }
        pin.note_use(now);
        Some(pin)
    }

    /// Ends a pin; nothing happens if it is gone already.
    pub(crate) fn unpin(&self, id: SnapshotId) {
        if id.life == self.shared.life.incarnation.0 {
            let gone = self.pins.state.lock().pins.remove(&id.number);
            self.note_ended(Vec::from_iter(gone));
        }
    }

    /// How many there are.
    pub(crate) fn pin_count(&self) -> usize {
        self.pins.state.lock().pins.len()
    }

    fn end_old_pins(&self, now: Duration) {
        self.end_pins(|_, pin| pin.is_over(now));
    }

    fn end_pins(&self, ends: impl Fn(u64, &Pin) -> bool) {
        let mut state = self.pins.state.lock();
        let gone = state.pins.extract_if(.., |number, pin| ends(*number, pin)).map(|(_, pin)| pin).collect();
        drop(state);
        self.note_ended(gone);
    }

    fn note_ended(&self, gone: Vec<Arc<Pin>>) {
        if !gone.is_empty() {
            drop(gone);
            // What was kept for them may go.
            self.shared.maintenance.wake_compaction();
        }
    }

    /// Ends pins that have had their time, or for which there is no room any more. Whether some are left.
    pub(crate) fn look_at_pins(&self) -> bool {
        self.end_old_pins(self.shared.clock.monotonic());
        let pins: Vec<(u64, Arc<Pin>)> =
            self.pins.state.lock().pins.iter().map(|(number, pin)| (*number, pin.clone())).collect();
        let held: Vec<Vec<(usize, u64)>> = pins.iter().map(|(_, pin)| pin.held_tables()).collect();
        let size_bytes_max = self.shared.settings.memory_tables_size_bytes_max / MEMORY_DIVISOR;
        let ended_count = match self.shared.streams.is_scarce() {
            true => pins.len(),
            false => choose_ended(&held, size_bytes_max),
        };
        if ended_count > 0 {
            tracing::info!(ended_count, "pinned snapshots end early: space or memory is scarce");
        }
        let numbers: BTreeSet<u64> = pins[..ended_count].iter().map(|(number, _)| *number).collect();
        drop(pins);
        self.end_pins(|number, _| numbers.contains(&number));
        let mut state = self.pins.state.lock();
        state.is_watched = !state.pins.is_empty();
        state.is_watched
    }
}

impl Pin {
    async fn scan(&self, spans: Vec<Span>, scan: &mut dyn Scan) -> Result<ScanEnd, PartitionError> {
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

    fn held_tables(&self) -> Vec<(usize, u64)> {
        self.ranges.iter().flat_map(|(range, view)| range.tables_held_by(view)).collect()
    }
}

/// Looks at pins until there are none; ends with its server.
async fn watch(server: Weak<PartitionServer>, clock: Arc<dyn base::Clock>) {
    loop {
        clock.sleep(LOOK_INTERVAL).await;
        let Some(server) = server.upgrade() else { return };
        if server.closing.load(Ordering::Acquire) {
            server.pins.clear();
        }
        if !server.look_at_pins() {
            return;
        }
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
