//! What is asked of a range partition, handed on to the part that does it.

use super::blob_data_collector::BlobDataCollector;
use super::executed::Executed;
use super::load::RangeStreams;
use super::partition::RangePartition;
use super::pinned_view::PinnedView;
use super::reader::WalkEnd;
use crate::decider::Decider;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, Span};
use crate::map::container_marks::MarkRows;
use crate::map::dead_filter::DeadFilter;
use crate::operation::{ObjectTable, Read, Row, RowPart, RowVersion, Scan};
use crate::statistics::RangeStatistics;
use arc_swap::Guard;
use base::{BoxFuture, Ticks};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::{ExtentId, Owner};
use tokio::sync::MutexGuard;

/// Which range it is, and what it is like.
impl RangePartition {
    /// Its object table.
    pub(crate) fn table(&self) -> ObjectTable {
        self.core.table
    }

    /// Its id, part of its streams' names.
    pub(crate) fn id(&self) -> u64 {
        self.core.id
    }

    /// Its owner's epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.core.owner.epoch.0
    }

    /// The keys it owns.
    pub(crate) fn range(&self) -> &KeyRange {
        &self.core.range
    }

    /// Start of the names of all streams of the range with this id.
    pub(crate) fn streams_folder(table: ObjectTable, id: u64) -> String {
        RangeStreams::folder(table, id)
    }

    /// The newest version that readers see.
    pub(crate) fn visible(&self) -> RowVersion {
        self.core.visible()
    }

    /// The time here: never before a version that readers see.
    pub(crate) fn now(&self) -> Ticks {
        let clock = &self.core.shared.clock;
        self.pipeline.time.now(clock.now(), clock.monotonic())
    }

    /// See `RangeTree`.
    pub(crate) async fn size_bytes(&self) -> Result<u64, PartitionError> {
        self.core.size_bytes().await
    }

    /// See `RangeTree`.
    pub(crate) async fn weighted_keys(&self) -> Result<Vec<(Bytes, u64)>, PartitionError> {
        self.core.weighted_keys().await
    }

    /// See `RangeTree`.
    pub(crate) fn check_lease(&self) -> Result<(), PartitionError> {
        self.core.check_lease()
    }

    /// The owner that the partition map names.
    pub(crate) fn named_owner(&self) -> Option<Owner> {
        self.named_owner
    }

    /// What it is like at present.
    pub(crate) fn statistics(&self) -> RangeStatistics {
        RangeStatistics {
            keys: self.core.range.clone(),
            checkpoints: self.core.checkpoint_count(),
            filters: self.core.tree.load().checkpoints.filter_count(),
            serial_section_held_for: self.load.serial_section_held_for(),
        }
    }

    /// See `RangeTree`.
    pub(crate) fn flush_soon(&self, keys: &KeyRange) {
        self.core.flush_soon(keys);
    }

    /// See `RangeTree`.
    pub(crate) async fn holds_any(&self, keys: &KeyRange) -> Result<bool, PartitionError> {
        self.core.holds_any(keys).await
    }

    /// Tells rows of deleted containers.
    pub(crate) fn dead_filter(&self) -> DeadFilter {
        self.core.shared.dead.filter(self.core.table)
    }
}

/// The partition map's range has the marks of deleted containers.
impl MarkRows for RangePartition {
    fn show<'a>(
        &'a self,
        keys: &'a KeyRange,
        scan: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<(), PartitionError>> {
        Box::pin(async move { self.scan(&[Span::Range(keys.clone())], scan).await.map(drop) })
    }
}

/// Operations and reads.
impl RangePartition {
    /// See `CommitPipeline`.
    pub(crate) async fn execute(
        &self,
        operation: &mut dyn Decider,
        reads: Vec<Read>,
    ) -> Result<Executed<(), Vec<Read>>, PartitionError> {
        self.pipeline.execute(operation, reads).await
    }

    /// See `Reader`.
    pub(crate) async fn get(&self, key: &RowKey, part: RowPart) -> Result<Option<Row>, PartitionError> {
        self.reader.get(key, part).await
    }

    /// See `Reader`.
    pub(crate) async fn scan(&self, spans: &[Span], scan: &mut dyn Scan) -> Result<WalkEnd, PartitionError> {
        self.reader.scan(spans, scan).await
    }
}

/// Pinned snapshots.
impl RangePartition {
    /// The range as it is now.
    pub(crate) fn pin_view(&self) -> PinnedView {
        let (tree, visible) = self.core.snapshot();
        PinnedView { tree: Guard::into_inner(tree), visible }
    }

    /// See `Reader`.
    pub(crate) async fn scan_view(
        &self,
        view: &PinnedView,
        spans: &[Span],
        scan: &mut dyn Scan,
    ) -> Result<WalkEnd, PartitionError> {
        self.reader.scan_view(view, spans, scan).await
    }

    /// See `Reader`.
    pub(crate) async fn scan_backward(
        &self,
        view: Option<&PinnedView>,
        spans: &[Span],
        scan: &mut dyn Scan,
    ) -> Result<WalkEnd, PartitionError> {
        self.reader.scan_backward(view, spans, scan).await
    }

    /// The memory tables that only the view keeps, or views of other moments: addresses, and bytes of each.
    pub(crate) fn tables_held_by(&self, view: &PinnedView) -> Vec<(usize, u64)> {
        match self.core.has_left() {
            true => view.held_tables(None),
            false => view.held_tables(Some(&self.core.tree())),
        }
    }
}

/// Memory and checkpoints.
impl RangePartition {
    /// See `Flusher`.
    pub(crate) async fn flush_all(&self) -> Result<(), PartitionError> {
        self.flusher.flush_all().await
    }

    /// See `Compactor`.
    pub(crate) fn compacting_bytes(&self) -> u64 {
        self.compactor.compacting_bytes()
    }
}

/// Blob data.
impl RangePartition {
    /// A container of this range was deleted: how much its rows name is to be counted anew.
    pub(crate) fn forget_data_count(&self) {
        if let Some(data) = &self.data {
            data.forget_count();
        }
    }

    /// Collects its blob data; an error if its table has none.
    pub(super) fn collector(&self) -> Result<&BlobDataCollector, PartitionError> {
        self.collector.as_ref().ok_or(PartitionError::Operation("the table has no blob data"))
    }

    /// See `BlobDataCollector`.
    pub(crate) async fn empty_extents(
        self: &Arc<Self>,
        extents: &BTreeSet<ExtentId>,
    ) -> Result<u64, PartitionError> {
        self.collector()?.empty_extents(self, extents).await
    }
}

/// Handing over.
impl RangePartition {
    /// See `RangeTree`.
    pub(crate) async fn hold_merges(&self) -> MutexGuard<'_, ()> {
        self.core.hold_merges().await
    }

    /// See `RangeTree`.
    pub(crate) async fn hold_flushes(&self) -> MutexGuard<'_, ()> {
        self.core.hold_flushes().await
    }

    /// Bytes of changes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.core.memory_bytes()
    }

    /// See `RangeTree`.
    pub(crate) fn settle(&self, floor: RowVersion) -> RowVersion {
        self.core.settle(floor)
    }

    /// Stops deciding. What it returns ends when all that was decided is durable.
    pub(crate) fn pause(
        &self,
    ) -> Result<impl Future<Output = Result<(), PartitionError>> + use<>, PartitionError> {
        self.core.pause()
    }

    /// Lets the group that gathers become durable soon.
    pub(crate) fn hurry(&self) {
        self.core.hurry();
    }

    /// The version of the newest decision.
    pub(crate) fn last_version(&self) -> RowVersion {
        self.core.last_version()
    }

    /// Goes on after a hand-over that did not happen.
    pub(crate) fn resume(&self) {
        self.core.resume();
    }

    /// See `RangeTree`.
    pub(crate) fn fail(&self, why: &PartitionError) {
        self.core.fail(why);
    }

    /// Other ranges have taken over.
    pub(crate) fn leave(&self) {
        self.core.leave();
    }

    /// Whether operations get `Moved`, and come again.
    pub(crate) fn is_handing_over(&self) -> bool {
        self.core.is_handing_over()
    }
}
