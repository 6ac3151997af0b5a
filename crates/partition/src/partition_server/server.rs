//! The server itself: its fields, which range owns a key, and requests that go to that range.
//!
//! What always holds: a request for a key that no range owns, or whose range is damaged, is an error. Where a
//! range is handed over, an operation waits and goes to the heir; a read ends where it began.

use super::map_copy_stream::MapCopy;
use super::owner::Owner;
use super::pinned_snapshots::PinnedSnapshots;
use super::unnamed_range::UnnamedRange;
use crate::background::abandon::AbandonedOnDrop;
use crate::blob_data::piece::Piece;
use crate::decider::{Decider, UnderWay};
use crate::error::PartitionError;
use crate::heat::tally::Access;
use crate::key::{KeyRange, Span, are_in_order, take_before, take_from};
use crate::map::routes::Routes;
use crate::operation::{ObjectTable, Operation, Read, Row, RowPart, Scan, ScanEnd};
use crate::pause::Pause;
use crate::range_moment::RangeMoment;
use crate::range_partition::{DataPin, Executed, RangePartition, Shared, WalkEnd};
use arc_swap::ArcSwap;
use base::BoxFuture;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The ranges of a process.
pub(crate) struct PartitionServer {
    pub(crate) shared: Shared,
    pub(super) routes: ArcSwap<Routes<Owner>>,
    /// Told when a hand-over has ended, for operations that wait for one.
    pub(super) handed_over: Notify,
    /// Held while ranges change; the next range's id.
    pub(super) next_range_id: tokio::sync::Mutex<u64>,
    /// Ranges that no map names, whose streams are still to be removed: what a start had no space to remove,
    /// and heirs of hand-overs that failed. No hand-over begins before that is done, so of these there are
    /// the heirs of one at most.
    pub(super) unnamed_ranges: Mutex<Vec<UnnamedRange>>,
    /// Held during a round of the partition manager.
    pub(super) balancing: tokio::sync::Mutex<()>,
    /// Held while the partition map changes.
    pub(super) map_copy: tokio::sync::Mutex<MapCopy>,
    pub(super) closing: AtomicBool,
    pub(super) counts: Mutex<HandOverCounts>,
    pub(super) pins: PinnedSnapshots,
}

/// What became of hand-overs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandOverCounts {
    pub(crate) splits: u64,
    pub(crate) merges: u64,
    /// Of these, by the partition manager and for which reason.
    pub(crate) size_splits: u64,
    pub(crate) heat_splits: u64,
    pub(crate) cold_merges: u64,
    /// The longest time in which operations of a range waited.
    pub(crate) longest_pause: Pause,
}

impl PartitionServer {
    /// The owner of `key`.
    pub(crate) fn owner(
        &self,
        table: ObjectTable,
        key: &[u8],
    ) -> Result<Arc<RangePartition>, PartitionError> {
        served(&self.routes.load(), table, key).cloned()
    }

    /// The ranges of a table that are served, in key order: all but damaged ones.
    pub(crate) fn ranges(&self, table: ObjectTable) -> Vec<Arc<RangePartition>> {
        self.routes.load().owners(table).filter_map(Owner::serving).cloned().collect()
    }

    /// Those of a table and the damaged ones between them, in key order.
    pub(super) fn owners(&self, table: ObjectTable) -> Vec<Owner> {
        self.routes.load().owners(table).cloned().collect()
    }

    /// The keys of a table's ranges, damaged ones included, in order.
    pub(crate) fn key_ranges(&self, table: ObjectTable) -> Vec<KeyRange> {
        self.routes.load().owners(table).map(|owner| owner.range().clone()).collect()
    }

    /// How many ranges can't be served.
    pub(crate) fn damaged_range_count(&self) -> u64 {
        self.routes.load().all().filter(|owner| owner.serving().is_none()).count() as u64
    }

    /// How many ranges there are, the partition map's and damaged ones included.
    pub(super) fn range_count(&self) -> usize {
        self.routes.load().all().count()
    }

    /// What became of hand-overs so far.
    pub(crate) fn counts(&self) -> HandOverCounts {
        *self.counts.lock()
    }

    /// Runs an operation at the range that owns its rows, wherever that moves.
    pub(crate) async fn execute<O: Operation>(&self, operation: O) -> Result<O::Reply, PartitionError> {
        let (table, reads) = (operation.object_table(), operation.reads());
        let mut under_way = UnderWay::new(operation);
        self.execute_any(table, reads, &mut under_way).await?;
        under_way.into_reply()
    }

    /// The same whatever the operation's type: compiled once, here, not for each of them in the crates that
    /// define them.
    fn execute_any<'a>(
        &'a self,
        table: ObjectTable,
        mut reads: Vec<Read>,
        operation: &'a mut dyn Decider,
    ) -> BoxFuture<'a, Result<(), PartitionError>> {
        Box::pin(async move {
            loop {
                let key = match reads.first() {
                    Some(Read::Point(key) | Read::Head(key)) => key.as_bytes(),
                    Some(Read::Range { range, .. }) => &range.start,
                    None => return Err(PartitionError::Operation("it reads nothing")),
                };
                let owner = self.owner(table, key)?;
                owner.load.note(key, Access::Write);
                match owner.execute(operation, reads).await? {
                    Executed::Done(()) => return Ok(()),
                    Executed::Moved(rest) => reads = rest,
                }
                self.wait_for_hand_over(&owner).await;
            }
        })
    }

    /// Appends blob data at the range that owns `key`, wherever that moves.
    pub(crate) async fn append_data(
        &self,
        table: ObjectTable,
        key: &crate::key::RowKey,
        bytes: Bytes,
    ) -> Result<(Piece, DataPin), PartitionError> {
        loop {
            let owner = self.owner(table, key.as_bytes())?;
            owner.load.note(key.as_bytes(), Access::Write);
            match owner.append_data(key, bytes.clone()).await? {
                Executed::Done(appended) => return Ok(appended),
                Executed::Moved(()) => self.wait_for_hand_over(&owner).await,
            }
        }
    }

    /// Waits until `range` has new owners or goes on.
    async fn wait_for_hand_over(&self, range: &RangePartition) {
        let handed_over = self.handed_over.notified();
        // Routes change before the range says that it has left, and both before this is notified: none is
        // missed.
        if range.is_handing_over() {
            handed_over.await;
        }
    }

    /// The row at `key`.
    pub(crate) async fn get(
        &self,
        table: ObjectTable,
        key: &crate::key::RowKey,
        part: RowPart,
    ) -> Result<Option<Row>, PartitionError> {
        // Reads finish where they began, whichever range owns the key meanwhile: so no count of owners is
        // touched.
        let routes = self.routes.load();
        let owner = served(&routes, table, key.as_bytes())?;
        owner.load.note(key.as_bytes(), Access::Read);
        owner.get(key, part).await
    }

    /// The moment of the range that owns `key`. Not counted as load: it costs the range nothing.
    pub(crate) fn moment(
        &self,
        table: ObjectTable,
        key: &crate::key::RowKey,
    ) -> Result<RangeMoment, PartitionError> {
        let routes = self.routes.load();
        let owner = served(&routes, table, key.as_bytes())?;
        let moment = RangeMoment { table, range_id: owner.id(), visible: owner.visible() };
        owner.check_lease()?;
        Ok(moment)
    }

    /// The time in the range that owns `key`.
    pub(crate) fn now(
        &self,
        table: ObjectTable,
        key: &crate::key::RowKey,
    ) -> Result<base::Ticks, PartitionError> {
        let routes = self.routes.load();
        let owner = served(&routes, table, key.as_bytes())?;
        let now = owner.now();
        // Whoever took the range over may have changed what this time decides about.
        owner.check_lease()?;
        Ok(now)
    }

    /// Shows the rows of `spans`, which are in order, over as many range partitions as it takes. What one of
    /// these has of them it shows from one snapshot; so all rows of a partition name are of one, because no
    /// range is cut inside a name.
    pub(crate) fn scan<'a>(
        &'a self,
        table: ObjectTable,
        spans: Vec<Span>,
        scan: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanEnd, PartitionError>> {
        Box::pin(async move {
            if !are_in_order(&spans) {
                return Err(PartitionError::Operation("spans that are not in order"));
            }
            let mut rest = VecDeque::from(spans);
            while let Some(first) = rest.front() {
                let owner = self.owner(table, first.start())?;
                let here = take_before(&mut rest, owner.range().end.as_ref());
                here.iter().for_each(|span| owner.load.note(span.start(), Access::Read));
                match owner.scan(&here, scan).await? {
                    WalkEnd::Through { wanted_from } => drop(take_before(&mut rest, Some(&wanted_from))),
                    WalkEnd::Stopped(key) => return Ok(ScanEnd::More(key)),
                }
            }
            Ok(ScanEnd::Complete)
        })
    }

    /// As [`Self::scan`], from the last row to the first; where it stops is the last key that a later one
    /// starts at.
    pub(crate) fn scan_backward<'a>(
        &'a self,
        table: ObjectTable,
        spans: Vec<Span>,
        scan: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<ScanEnd, PartitionError>> {
        Box::pin(async move {
            if !are_in_order(&spans) {
                return Err(PartitionError::Operation("spans that are not in order"));
            }
            let mut rest = spans;
            while let Some(last) = rest.last() {
                let owner = {
                    let routes = self.routes.load();
                    let owner = match last {
                        Span::Point(key) => routes.owner(table, key.as_bytes()),
                        Span::Range(range) => routes.owner_before(table, range.end.as_deref()),
                    };
                    owner.ok_or_else(|| no_owner(table, last.start()))?.served()?.clone()
                };
                let here = take_from(&mut rest, &owner.range().start);
                here.iter().for_each(|span| owner.load.note(span.start(), Access::Read));
                if let WalkEnd::Stopped(key) = owner.scan_backward(None, &here, scan).await? {
                    return Ok(ScanEnd::More(key));
                }
            }
            Ok(ScanEnd::Complete)
        })
    }

    /// The same for work without a waiter: where a range does not read, it goes on with the next one. What it
    /// passes over it tells. A key that the scan skips to counts in one range only.
    pub(crate) fn scan_past_damage<'a>(
        &'a self,
        table: ObjectTable,
        range: KeyRange,
        scan: &'a mut dyn Scan,
        passed_over: &'a mut (dyn FnMut(PartitionError) + Send),
    ) -> BoxFuture<'a, Result<ScanEnd, PartitionError>> {
        Box::pin(async move {
            for part in self.key_ranges(table) {
                let part = part.intersect(&range);
                if part.is_empty() {
                    continue;
                }
                match self.scan(table, vec![Span::Range(part)], scan).await {
                    Ok(ScanEnd::Complete) => {}
                    Err(error @ PartitionError::Storage(_)) => passed_over(error),
                    other => return other,
                }
            }
            Ok(ScanEnd::Complete)
        })
    }

    /// Refuses further writes and waits for those under way.
    pub(crate) async fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.shared.maintenance.close();
        // Whoever does not wait for the end leaves none open.
        let _abandoned = AbandonedOnDrop::new(&self.shared.maintenance);
        self.pins.clear();
        let _no_hand_over = self.next_range_id.lock().await;
        let routes = self.routes.load_full();
        for range in routes.all().filter_map(Owner::serving) {
            range.close().await;
        }
        self.shared.streams.leave(self.shared.life.incarnation);
    }
}

/// One that is dropped without being closed, as when its process is killed in a test, keeps nothing in
/// memory.
impl Drop for PartitionServer {
    fn drop(&mut self) {
        self.shared.maintenance.abandon();
    }
}

/// The range that serves `key`.
fn served<'a>(
    routes: &'a Routes<Owner>,
    table: ObjectTable,
    key: &[u8],
) -> Result<&'a Arc<RangePartition>, PartitionError> {
    routes.owner(table, key).ok_or_else(|| no_owner(table, key))?.served()
}

fn no_owner(table: ObjectTable, key: &[u8]) -> PartitionError {
    PartitionError::Unavailable(format!("no range of table {} owns {}", table.name(), key.escape_ascii()))
}
