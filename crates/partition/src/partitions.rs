//! The facade of the layer: runs operations, gets and scans at the ranges that own the keys, wherever they
//! move.
//!
//! What always holds: a key that no range owns is an error, never "no rows"; a range that is split or merged
//! makes requests wait, not fail.

use crate::background::abandon::AbandonedOnDrop;
use crate::background::maintenance::Maintenance;
use crate::background::range_work::{Collected, RangeWork};
use crate::blob_data::choose_emptied::Pace;
use crate::blob_data::data_writer::DataWriter;
use crate::blob_data::piece::Piece;
use crate::error::PartitionError;
use crate::heat::tally::Access;
use crate::heat::window::{HeatQuery, HeatReport};
use crate::key::{KeyRange, RowKey, Span};
use crate::lease::{EndlessLease, Lease};
use crate::map::container_marks::DeadContainer;
use crate::memory::memory_budget::MemoryBudget;
use crate::operation::{ObjectTable, Operation, Row, RowPart, Scan, ScanEnd};
use crate::partition_server::{Change, PartitionServer};
use crate::range_moment::RangeMoment;
use crate::range_partition::{DataPin, Life, RangeMetrics, Shared};
use crate::settings::PartitionSettings;
use crate::snapshot_id::{SnapshotId, SnapshotOf};
use crate::statistics::{PartitionStatistics, RangeDetails, RangeStatistics};
use crate::tree::block_cache::BlockCache;
use base::{BoxFuture, Environment, Ticks};
use bytes::Bytes;
use std::sync::Arc;
use stream::Streams;

/// The object tables of a stamp.
pub struct Partitions {
    pub(crate) server: Arc<PartitionServer>,
}

impl Partitions {
    /// Loads every range.
    pub fn open<'a>(
        env: &'a Environment,
        streams: Arc<Streams>,
        settings: PartitionSettings,
    ) -> BoxFuture<'a, Result<Self, PartitionError>> {
        Self::open_while(env, streams, settings, Arc::new(EndlessLease))
    }

    /// Loads every range, to be served while `lease` holds.
    pub fn open_while<'a>(
        env: &'a Environment,
        streams: Arc<Streams>,
        settings: PartitionSettings,
        lease: Arc<dyn Lease>,
    ) -> BoxFuture<'a, Result<Self, PartitionError>> {
        Box::pin(async move {
            settings.check().map_err(|error| PartitionError::Settings(error.to_string()))?;
            let data_writer =
                DataWriter::start(&*env.spawner, &streams, settings.in_flight_size_bytes_max())?;
            let row_data_writer = DataWriter::start_for_flushes(&*env.spawner, &streams)?;
            let incarnation = streams.join(&*env.random);
            let metrics = Arc::new(RangeMetrics::new(&env.metrics));
            let cache = BlockCache::new(settings.cache_size_bytes_max);
            let shared = Shared {
                clock: env.clock.clone(),
                random: env.random.clone(),
                spawner: env.spawner.clone(),
                streams,
                cache: Arc::new(cache.recording(env.clock.clone(), metrics.disk_wait.clone())),
                memory: MemoryBudget::new(settings.memory_tables_size_bytes_max, settings.log_groups_max),
                dead: Arc::default(),
                settings,
                maintenance: Maintenance::start(&*env.spawner, &env.clock)?,
                data_writer,
                row_data_writer,
                metrics,
                life: Life { incarnation, lease, shown: Arc::default() },
                was_refused_space: Arc::default(),
            };
            // Its threads and ranges would go on: a process that stands by tries again.
            let abandoned = AbandonedOnDrop::new(&shared.maintenance);
            let server = PartitionServer::open(shared).await?;
            abandoned.keep();
            Ok(Partitions { server })
        })
    }

    /// What the layer has done in the background since it was opened.
    pub fn statistics(&self) -> PartitionStatistics {
        let shared = &self.server.shared;
        let (flushes, compactions) = shared.maintenance.counts();
        let counts = self.server.counts();
        PartitionStatistics {
            flushes,
            compactions,
            damaged_ranges: self.server.damaged_range_count(),
            compacted_bytes: shared.maintenance.compacted_bytes(),
            range_splits: counts.splits,
            range_merges: counts.merges,
            size_splits: counts.size_splits,
            heat_splits: counts.heat_splits,
            cold_merges: counts.cold_merges,
            longest_pause: counts.longest_pause,
            memory: shared.memory.statistics(),
            cache: shared.cache.statistics(),
        }
    }

    /// What memory tables and the cache may take together.
    pub fn memory_budget_size_bytes(&self) -> u64 {
        self.server.shared.settings.memory_budget_size_bytes()
    }

    /// Has the cache take no more than this from now on, and never more than it was set to: for who sees that
    /// the process has more memory than it should have.
    pub fn limit_cache(&self, size_bytes_max: u64) {
        self.server.shared.cache.limit(size_bytes_max);
    }

    /// Runs an operation: durable and visible when it returns.
    pub async fn execute<O: Operation>(&self, operation: O) -> Result<O::Reply, PartitionError> {
        self.server.execute(operation).await
    }

    /// The row at `key`, from the newest durable state.
    pub fn get<'a>(
        &'a self,
        table: ObjectTable,
        key: &'a RowKey,
    ) -> BoxFuture<'a, Result<Option<Row>, PartitionError>> {
        Box::pin(async move { self.server.get(table, key, RowPart::Whole).await })
    }

    /// The same, but the row may come without its overflow, as for [`Read::Head`](crate::Read::Head): that
    /// costs less.
    pub fn get_head<'a>(
        &'a self,
        table: ObjectTable,
        key: &'a RowKey,
    ) -> BoxFuture<'a, Result<Option<Row>, PartitionError>> {
        Box::pin(async move { self.server.get(table, key, RowPart::Head).await })
    }

    /// The moment of the range that owns `key`: what is read after it was asked for is still so while it is
    /// the same.
    pub fn moment(&self, table: ObjectTable, key: &RowKey) -> Result<RangeMoment, PartitionError> {
        self.server.moment(table, key)
    }

    /// The time in the range that owns `key`, by which its operations are decided: the wall clock's, but
    /// never before a version there that was acknowledged.
    pub fn now(&self, table: ObjectTable, key: &RowKey) -> Result<Ticks, PartitionError> {
        self.server.now(table, key)
    }

    /// Shows the rows of `range` to `scan`, in key order.
    pub async fn scan<S: Scan>(
        &self,
        table: ObjectTable,
        range: KeyRange,
        scan: S,
    ) -> Result<(S, ScanEnd), PartitionError> {
        self.scan_spans(table, vec![Span::Range(range)], scan).await
    }

    /// Shows the rows of `spans` to `scan`; each span lies behind the one before it. Rows of one partition
    /// name are of one snapshot, also if they lie in several spans.
    pub async fn scan_spans<S: Scan>(
        &self,
        table: ObjectTable,
        spans: Vec<Span>,
        mut scan: S,
    ) -> Result<(S, ScanEnd), PartitionError> {
        let end = self.server.scan(table, spans, &mut scan).await?;
        Ok((scan, end))
    }

    /// Shows the rows of `range` to `scan` for work without a waiter, such as a sweep: a range partition that
    /// does not read, be it damaged as a whole or in some rows, is passed over from there on, and
    /// `passed_over` gets the reason.
    pub async fn scan_past_damage<S: Scan>(
        &self,
        table: ObjectTable,
        range: KeyRange,
        mut scan: S,
        mut passed_over: impl FnMut(PartitionError) + Send,
    ) -> Result<(S, ScanEnd), PartitionError> {
        let end = self.server.scan_past_damage(table, range, &mut scan, &mut passed_over).await?;
        Ok((scan, end))
    }

    /// Pins a snapshot of all rows of `keys`, which are of one account: scans that name it show the rows of
    /// one moment, over all range partitions. Bounded: see [`crate::PINNED_SNAPSHOTS_OF_ACCOUNT_MAX`],
    /// [`crate::PINNED_SNAPSHOT_IDLE_MAX`] and what is beside them.
    pub fn pin_snapshot(
        &self,
        table: ObjectTable,
        keys: KeyRange,
    ) -> BoxFuture<'_, Result<SnapshotId, PartitionError>> {
        Box::pin(self.server.pin(table, keys))
    }

    /// Ends a pinned snapshot; nothing happens if it is gone, or is of other rows.
    pub fn unpin_snapshot(&self, snapshot: &SnapshotOf) {
        self.server.unpin(snapshot);
    }

    /// Snapshots that are pinned.
    pub fn pinned_snapshot_count(&self) -> usize {
        self.server.pin_count()
    }

    /// As [`Self::scan_spans`], over rows as they were when the snapshot was pinned, of which they are a
    /// part. [`PartitionError::SnapshotExpired`] if it is gone, or is of other rows.
    pub async fn scan_pinned<S: Scan>(
        &self,
        snapshot: &SnapshotOf,
        spans: Vec<Span>,
        mut scan: S,
    ) -> Result<(S, ScanEnd), PartitionError> {
        let end = self.server.scan_pinned(snapshot, spans, false, &mut scan).await?;
        Ok((scan, end))
    }

    /// Shows the rows of `spans` from the last one to the first; each span lies behind the one before it. As
    /// they are, in each range partition of one snapshot, or as they were when `snapshot`, which is
    /// of this table, was pinned. A scan that stops goes on, as one of these, with all up to and including
    /// the key at which it did. A scan that skips rows is shown them all the same.
    ///
    /// It costs more than a scan in the order of keys: small parts of a range are read and turned round. The
    /// last row of a range costs a block of each checkpoint.
    pub async fn scan_backward<S: Scan>(
        &self,
        table: ObjectTable,
        spans: Vec<Span>,
        snapshot: Option<&SnapshotOf>,
        mut scan: S,
    ) -> Result<(S, ScanEnd), PartitionError> {
        let end = match snapshot {
            Some(snapshot) => self.server.scan_pinned(snapshot, spans, true, &mut scan).await?,
            None => self.server.scan_backward(table, spans, &mut scan).await?,
        };
        Ok((scan, end))
    }

    /// Appends blob data to the range that owns `key`: durable when it returns. A row of that range may name
    /// the piece while the pin is held, and keeps it from then on. 1 byte to [`crate::PIECE_SIZE_BYTES_MAX`].
    pub fn append_data<'a>(
        &'a self,
        table: ObjectTable,
        key: &'a RowKey,
        bytes: Bytes,
    ) -> BoxFuture<'a, Result<(Piece, DataPin), PartitionError>> {
        Box::pin(async move { self.server.append_data(table, key, bytes).await })
    }

    /// The row at `key`, as [`Self::get`] finds it; its pieces can be read while the pin is held.
    pub fn get_with_data<'a>(
        &'a self,
        table: ObjectTable,
        key: &'a RowKey,
    ) -> BoxFuture<'a, Result<Option<(Row, DataPin)>, PartitionError>> {
        Box::pin(async move {
            let owner = self.server.owner(table, key.as_bytes())?;
            owner.load.note(key.as_bytes(), Access::Read);
            owner.check_lease()?;
            let found = owner.get_with_data(key).await?;
            owner.check_lease()?;
            Ok(found)
        })
    }

    /// Frees the space of blob data that no row names, at once, as it is done in the background anyway.
    pub fn collect_data_now<'a>(
        &'a self,
        table: ObjectTable,
    ) -> BoxFuture<'a, Result<Collected, PartitionError>> {
        Box::pin(async move {
            let mut all = Collected::default();
            for range in self.server.ranges(table) {
                let mut collected = Collected::default();
                range.clone().collect_data(Pace::Busy, &|| false, &|| false, &mut collected).await?;
                all.extents += collected.extents;
                all.size_bytes += collected.size_bytes;
                all.copied_bytes += collected.copied_bytes;
            }
            Ok(all)
        })
    }

    /// Bytes that have to become free on the disk before writes are taken again; 0: they are.
    pub fn missing_space_bytes(&self) -> u64 {
        self.server.shared.streams.missing_bytes()
    }

    /// The key ranges of a table, in order, those that are damaged included.
    pub fn ranges(&self, table: ObjectTable) -> Vec<KeyRange> {
        self.server.key_ranges(table)
    }

    /// What the ranges of a table that are served are like, in the order of their keys.
    pub fn range_statistics(&self, table: ObjectTable) -> Vec<RangeStatistics> {
        self.server.ranges(table).iter().map(|range| range.statistics()).collect()
    }

    /// The ranges of a table as operators see them, in the order of their keys. Sizes may be read from disk.
    pub fn range_details<'a>(&'a self, table: ObjectTable) -> BoxFuture<'a, Vec<RangeDetails>> {
        Box::pin(async move { self.server.range_details(table).await })
    }

    /// Which keys were asked for in the last hours, and when. Rows may be read from disk, to find out whether
    /// what is written is at an end of its range.
    pub fn heat<'a>(&'a self, query: &'a HeatQuery) -> BoxFuture<'a, HeatReport> {
        Box::pin(async move { self.server.heat(query).await })
    }

    /// Brings what is in memory to checkpoints, of the range with this id, or of all of the table. Returns
    /// how many ranges that were; 0: there is no such range.
    pub fn flush_now<'a>(
        &'a self,
        table: ObjectTable,
        id: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, PartitionError>> {
        Box::pin(async move { self.server.flush_now(table, id).await })
    }

    /// Compacts what is worth it, as it is done in the background anyway, but without waiting until it is
    /// idle; which ranges, as for [`Self::flush_now`]. Returns how many compactions that took; `None`: there
    /// is no such range.
    pub fn compact_now<'a>(
        &'a self,
        table: ObjectTable,
        id: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<u64>, PartitionError>> {
        Box::pin(async move { self.server.compact_now(table, id).await })
    }

    /// Splits the range with this id in the middle of what it holds. False: no key parts it, or there is no
    /// such range.
    pub fn split_in_middle<'a>(
        &'a self,
        table: ObjectTable,
        id: u64,
    ) -> BoxFuture<'a, Result<bool, PartitionError>> {
        Box::pin(async move { self.server.split_in_middle(table, id).await })
    }

    /// Splits the range that owns `key` so that a new one starts at the key's partition name. False: one does
    /// already.
    pub fn split<'a>(
        &'a self,
        table: ObjectTable,
        key: &'a RowKey,
    ) -> BoxFuture<'a, Result<bool, PartitionError>> {
        Box::pin(async move { self.server.change_ranges(table, Change::Split(key.clone())).await })
    }

    /// Merges the range that owns `key` with the one after it. False: there is none.
    pub fn merge<'a>(
        &'a self,
        table: ObjectTable,
        key: &'a RowKey,
    ) -> BoxFuture<'a, Result<bool, PartitionError>> {
        Box::pin(async move { self.server.change_ranges(table, Change::Merge(key.clone())).await })
    }

    /// Looks at once whether ranges shall be split or merged, as it is done every 15 seconds anyway. Returns
    /// how many were.
    pub fn balance_now<'a>(&'a self) -> BoxFuture<'a, Result<u64, PartitionError>> {
        Box::pin(async move { self.server.balance().await })
    }

    /// The service has deleted this container for good: its id never comes back, so its rows may go in the
    /// background. Durable when it returns; done twice it does nothing. Where it has no rows there is nothing
    /// to be done, and nothing is written.
    pub fn retire_container<'a>(
        &'a self,
        table: ObjectTable,
        account: &'a str,
        container_id: u64,
    ) -> BoxFuture<'a, Result<(), PartitionError>> {
        Box::pin(async move {
            self.server.retire_container(DeadContainer::new(table, account, container_id)).await
        })
    }

    /// The first container after the given one, in key order, that has rows: its account and id. With it a
    /// service finds containers that it deleted, but could not retire any more.
    pub async fn next_container(
        &self,
        table: ObjectTable,
        after: Option<(&str, u64)>,
    ) -> Result<Option<(String, u64)>, PartitionError> {
        let after = after.map(|(account, id)| KeyRange::container(account, id));
        self.server.next_container(table, after).await
    }

    /// Whether the rows of a container go because it was retired, and had some then.
    pub async fn is_retired(
        &self,
        table: ObjectTable,
        account: &str,
        container_id: u64,
    ) -> Result<bool, PartitionError> {
        self.server.is_marked(&DeadContainer::new(table, account, container_id)).await
    }

    /// Containers that were retired and may still have rows.
    pub fn retired_container_count(&self) -> usize {
        self.server.shared.dead.count() as usize
    }

    /// Refuses further writes and waits for those under way.
    pub fn close<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.server.close().await;
        })
    }
}
