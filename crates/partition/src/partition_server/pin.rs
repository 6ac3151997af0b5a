//! Pinning snapshots, reading and ending them: the server's verbs over what [`super::pinned_snapshots`] has.
//!
//! What always holds: a snapshot that is gone is an error, never a read of another moment.

use super::pinned_snapshots::{
    LOOK_INTERVAL, MEMORY_DIVISOR, PINNED_SNAPSHOTS_MAX, PINNED_SNAPSHOTS_OF_ACCOUNT_MAX, Pin, choose_ended,
};
use super::server::PartitionServer;
use crate::error::PartitionError;
use crate::key::{KeyRange, Span, account_prefix, are_in_order};
use crate::operation::{ObjectTable, Scan, ScanEnd};
use crate::range_partition::{PinnedView, RangePartition};
use crate::snapshot_id::SnapshotId;
use base::BoxFuture;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

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
        let _moment = self.shared.life.shown.write();
        let routes = self.routes.load();
        let owners = routes.owners(table).filter(|owner| !owner.range().intersect(keys).is_empty());
        let pinned = owners.map(|owner| {
            let range = owner.served()?;
            Ok((range.clone(), range.pin_view()))
        });
        pinned.collect()
    }

    /// Shows the rows of `spans`, which are in order, as they were when the snapshot was pinned, from the
    /// first to the last or from the last to the first.
    pub(crate) fn scan_pinned<'a>(
        &'a self,
        id: SnapshotId,
        table: ObjectTable,
        spans: Vec<Span>,
        is_backward: bool,
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
            let end = match is_backward {
                true => pin.scan_backward(spans, scan).await,
                false => pin.scan(spans, scan).await,
            };
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
