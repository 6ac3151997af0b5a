//! Pinning snapshots, reading and ending them: the server's verbs over what [`super::pinned_snapshots`] has.
//!
//! What always holds: a snapshot that is gone is an error, never a read of another moment.

use super::choose_pins::{Held, Place, choose_ended, choose_place};
use super::pinned_snapshots::{LOOK_INTERVAL, MEMORY_DIVISOR, Pin, PinInUse, PinnedSnapshots, State, Uses};
use super::server::PartitionServer;
use crate::error::PartitionError;
use crate::key::{KeyRange, Span, account_prefix, are_in_order};
use crate::operation::{ObjectTable, Scan, ScanEnd};
use crate::range_partition::{PinnedView, RangePartition};
use crate::snapshot_id::{SnapshotId, SnapshotOf};
use base::BoxFuture;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

impl PartitionServer {
    /// Pins a snapshot of the rows of `keys`, which are of one account.
    pub(crate) async fn pin(
        self: &Arc<Self>,
        table: ObjectTable,
        keys: KeyRange,
    ) -> Result<SnapshotId, PartitionError> {
        let account = account_prefix(&keys.start).ok_or(PartitionError::Operation("keys of no account"))?;
        let account = Bytes::copy_from_slice(account);
        if self.closing.load(Ordering::Acquire) {
            return Err(PartitionError::Unavailable("the server is stopping".to_owned()));
        }
        if self.has_little_space().await {
            return Err(PartitionError::DiskFull);
        }
        let now = self.shared.clock.monotonic();
        self.end_old_pins(now);
        // Before anything that others wait for: there are many more requests than places.
        let reserved = Reserved::new(&self.pins, account.clone())?;
        let ranges = self.pin_views(table, &keys)?;
        // What was shown while another process took over is not the newest.
        ranges.iter().try_for_each(|(range, _)| range.check_lease())?;
        let id = SnapshotId::draw(&*self.shared.random);
        let pin = Arc::new(Pin { id, account, table, keys, ranges, began_at: now, uses: Uses::new(now) });
        let (given_way, starts_watch) = reserved.take(pin)?;
        self.note_ended(Vec::from_iter(given_way));
        if starts_watch {
            self.shared.was_refused_space.store(false, Ordering::Release);
            let (server, clock) = (Arc::downgrade(self), self.shared.clock.clone());
            self.shared.spawner.spawn("pinned-snapshots", Box::pin(watch(server, clock)));
        }
        Ok(id)
    }

    /// Whether the disk has too little space for checkpoints that only pins keep.
    async fn has_little_space(&self) -> bool {
        self.shared.streams.is_scarce() || self.shared.streams.is_tight().await
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
        let pinned = routes.owners_of(table, keys).map(|owner| {
            let range = owner.served()?;
            Ok((range.clone(), range.pin_view()))
        });
        pinned.collect()
    }

    /// Shows the rows of `spans`, which are in order, as they were when the snapshot was pinned, from the
    /// first to the last or from the last to the first.
    pub(crate) fn scan_pinned<'a>(
        &'a self,
        snapshot: &'a SnapshotOf,
        spans: Vec<Span>,
        is_backward: bool,
        scan: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanEnd, PartitionError>> {
        Box::pin(async move {
            if !are_in_order(&spans) {
                return Err(PartitionError::Operation("spans that are not in order"));
            }
            let clock = &self.shared.clock;
            let pin = self.find_pin(snapshot, clock.monotonic()).ok_or(PartitionError::SnapshotExpired)?;
            if !spans.iter().all(|span| pin.covers(span)) {
                return Err(PartitionError::Operation("spans that are not of the snapshot"));
            }
            let pin = PinInUse::new(pin, clock.clone());
            match is_backward {
                true => pin.scan_backward(spans, scan).await,
                false => pin.scan(spans, scan).await,
            }
        })
    }

    fn find_pin(&self, snapshot: &SnapshotOf, now: Duration) -> Option<Arc<Pin>> {
        let state = self.pins.state.lock();
        state.pins.values().find(|pin| pin.is(snapshot) && !pin.is_over(now)).cloned()
    }

    /// Ends a pin; nothing happens if it is gone already, or is of other rows.
    pub(crate) fn unpin(&self, snapshot: &SnapshotOf) {
        self.end_pins(|_, pin| pin.is(snapshot));
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

    /// Ends pins that have had their time, or for which there is no space or memory any more. Whether some
    /// are left.
    fn look_at_pins(&self, has_little_space: bool) -> bool {
        self.end_old_pins(self.shared.clock.monotonic());
        let pins: Vec<(u64, Arc<Pin>)> =
            self.pins.state.lock().pins.iter().map(|(number, pin)| (*number, pin.clone())).collect();
        let size_bytes_max = self.shared.settings.memory_tables_size_bytes_max / MEMORY_DIVISOR;
        let ended: BTreeSet<usize> = match has_little_space {
            true => (0..pins.len()).collect(),
            false => {
                let held =
                    pins.iter().map(|(_, pin)| Held { account: &pin.account, tables: pin.held_tables() });
                choose_ended(&held.collect::<Vec<_>>(), size_bytes_max)
            }
        };
        if !ended.is_empty() {
            tracing::info!(
                ended_count = ended.len(),
                "pinned snapshots end early: space or memory is scarce"
            );
        }
        let numbers: BTreeSet<u64> = ended.iter().map(|index| pins[*index].0).collect();
        drop(pins);
        self.end_pins(|number, _| numbers.contains(&number));
        let mut state = self.pins.state.lock();
        state.is_watched = !state.pins.is_empty();
        state.is_watched
    }
}

/// A place for a pin of an account, until it is dropped.
struct Reserved<'a> {
    pins: &'a PinnedSnapshots,
    account: Bytes,
}

impl<'a> Reserved<'a> {
    fn new(pins: &'a PinnedSnapshots, account: Bytes) -> Result<Self, PartitionError> {
        let mut state = pins.state.lock();
        if choose_place_in(&state, &account) == Place::None {
            return Err(PartitionError::TooManySnapshots);
        }
        state.making.push(account.clone());
        drop(state);
        Ok(Reserved { pins, account })
    }

    /// Has the pin take the place. What gave way to it, and whether nobody looks at pins yet.
    fn take(self, pin: Arc<Pin>) -> Result<(Option<Arc<Pin>>, bool), PartitionError> {
        let pins = self.pins;
        drop(self);
        let mut state = pins.state.lock();
        let given_way = match choose_place_in(&state, &pin.account) {
            Place::Free => None,
            Place::InsteadOf(index) => state.pins.keys().nth(index).copied(),
            // Others were being made at the same time.
            Place::None => return Err(PartitionError::TooManySnapshots),
        };
        let given_way = given_way.and_then(|number| state.pins.remove(&number));
        state.last_number += 1;
        let number = state.last_number;
        state.pins.insert(number, pin);
        Ok((given_way, !std::mem::replace(&mut state.is_watched, true)))
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut state = self.pins.state.lock();
        if let Some(index) = state.making.iter().position(|account| *account == self.account) {
            state.making.swap_remove(index);
        }
    }
}

fn choose_place_in(state: &State, account: &[u8]) -> Place {
    let pinned: Vec<&[u8]> = state.pins.values().map(|pin| &pin.account[..]).collect();
    let making: Vec<&[u8]> = state.making.iter().map(|account| &account[..]).collect();
    choose_place(&pinned, &making, account)
}

/// Looks at pins until there are none; ends with its server.
async fn watch(server: Weak<PartitionServer>, clock: Arc<dyn base::Clock>) {
    loop {
        clock.sleep(LOOK_INTERVAL).await;
        let Some(server) = server.upgrade() else { return };
        if server.closing.load(Ordering::Acquire) {
            server.pins.clear();
        }
        let was_refused = server.shared.was_refused_space.swap(false, Ordering::AcqRel);
        let has_little_space = was_refused || server.has_little_space().await;
        if !server.look_at_pins(has_little_space) {
            return;
        }
    }
}
