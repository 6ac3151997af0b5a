//! Opening: the partition map says which ranges there are; each is loaded, and what it does not name is
//! removed.
//!
//! What always holds: the ranges of a table cover every key once, or nothing is served. A range that does not
//! load is damaged and keeps no other from being served; all ranges are read before any is written to. A
//! table without rows in the map is new, or from before there was a map: then it is one range with the first
//! id. Streams of any other range while the map names none would mean that the map is lost: that is damage,
//! and nothing is removed.

use super::keep_map_copy::MapError;
use super::open_map::{OpenedMap, open_map};
use super::owner::{DamagedRange, Owner};
use super::pinned_snapshots::PinnedSnapshots;
use super::range_ids::{FIRST_RANGE_ID, range_ids};
use super::server::{HandOverCounts, PartitionServer};
use super::unnamed_range::UnnamedRange;
use crate::background::retries::RangeName;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::map::check_cover::check_cover;
use crate::map::choose_owner::{choose_owner, is_orphan, newer};
use crate::map::dead_containers::DeadContainers;
use crate::map::partition_map::{ChangeMap, MapEntry};
use crate::map::routes::Routes;
use crate::operation::{OBJECT_TABLES, ObjectTable};
use crate::range_partition::{self, LoadError, RangeOwners, RangePartition, RangeStreams, ReadRange, Shared};
use ::stream::{StreamError, StreamName};
use arc_swap::ArcSwap;
use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::{Notify, oneshot};

/// Ranges that are read side by side: their logs keep processors busy. Each has up to 32 MiB of log under
/// way.
const READ_AT_ONCE_MAX: usize = 4;
/// The same of a store far away, which takes milliseconds for each of many reads: 16 MiB each.
const READ_AT_ONCE_MAX_FAR: usize = 8;
/// Ranges that are taken over side by side in a store far away: each waits for a few changes of metadata and
/// one append. On a disk they are taken one by one, so that one that is full is not filled by all of them.
const TAKEN_AT_ONCE_MAX_FAR: usize = 16;
/// Ranges whose owner one change of the map names.
const NAMED_COUNT_MAX: usize = 256;

impl PartitionServer {
    /// Loads every range that the partition map names.
    pub(crate) async fn open(shared: Shared) -> Result<Arc<Self>, PartitionError> {
        let OpenedMap { range: map, copy, mut entries, marks, is_first_hand } = open_map(&shared).await?;
        let at_hand_max = shared.settings.marks_at_hand_max;
        let dead = DeadContainers::new(map.clone(), marks.counts()?, at_hand_max, &*shared.clock);
        let shared = Shared { dead: Arc::new(dead), ..shared };
        let mut routes = Routes::default();
        routes.add(ObjectTable::PartitionMap, KeyRange::all(), Owner::Serving(map));
        let server = Arc::new(PartitionServer {
            shared,
            routes: ArcSwap::from_pointee(routes.clone()),
            handed_over: Notify::new(),
            next_range_id: tokio::sync::Mutex::new(FIRST_RANGE_ID + 1),
            unnamed_ranges: Mutex::default(),
            balancing: tokio::sync::Mutex::new(()),
            map_copy: tokio::sync::Mutex::new(copy),
            closing: AtomicBool::new(false),
            counts: Mutex::new(HandOverCounts::default()),
            pins: PinnedSnapshots::default(),
        });
        entries.extend(server.add_new_tables(&entries).await?);
        check_cover(&entries)?;
        tracing::debug!(ranges = entries.len(), "the partition map is open: its ranges are read");
        let found = server.read_ranges(&entries).await?;
        tracing::debug!("all ranges are read: the map names their owner");
        let highest_id = server.remove_leftovers(&entries, &found, is_first_hand).await?;
        let owners = server.name_owners(&entries, &found).await?;
        tracing::debug!("the map names the ranges' owner: they are taken over");
        let ranges = entries.into_iter().zip(found).zip(owners);
        for (table, range, owner) in server.take_over_ranges(ranges.collect()).await? {
            routes.add(table, range, owner);
        }
        server.routes.store(Arc::new(routes));
        *server.next_range_id.lock().await = highest_id + 1;
        let clock = server.shared.clock.clone();
        let manager = super::balance::run(Arc::downgrade(&server), clock);
        server.shared.spawner.spawn("partition-manager", Box::pin(manager));
        Ok(server)
    }

    /// Gives each table that the map does not know its first range.
    async fn add_new_tables(&self, known: &[MapEntry]) -> Result<Vec<MapEntry>, PartitionError> {
        let mut added = Vec::new();
        for table in OBJECT_TABLES {
            if known.iter().any(|entry| entry.table == table) {
                continue;
            }
            let mut entry = MapEntry { table, id: FIRST_RANGE_ID, range: KeyRange::all(), owner: None };
            RangePartition::create(&self.shared, table, entry.id, entry.range.clone()).await?;
            let names = RangeStreams::new(table, entry.id);
            entry.owner = Some(self.shared.taken(names.metadata())?.owner);
            self.change_map(ChangeMap { old: Vec::new(), new: vec![entry.clone()] }).await?;
            added.push(entry);
        }
        Ok(added)
    }

    /// Reads the ranges that the map names, some side by side, each on a worker.
    async fn read_ranges(&self, entries: &[MapEntry]) -> Result<Vec<FoundRange>, PartitionError> {
        let metrics = &self.shared.metrics;
        metrics.start_ranges.set(entries.len() as u64);
        metrics.start_ranges_read.set(0);
        let read = |(index, entry): (usize, &MapEntry)| {
            let read = self.read_range(entry.clone());
            async move { read.await.map(|found| (index, found)) }.boxed()
        };
        let reads: Vec<_> = entries.iter().enumerate().map(read).collect();
        let at_once = if self.shared.streams.are_far() { READ_AT_ONCE_MAX_FAR } else { READ_AT_ONCE_MAX };
        // In any order: behind a range with a long log the others would wait.
        let mut reading = stream::iter(reads).buffer_unordered(at_once);
        let mut found = BTreeMap::new();
        while let Some(read) = reading.next().await {
            let (index, range) = read?;
            found.insert(index, range);
            metrics.start_ranges_read.set(found.len() as u64);
        }
        Ok(found.into_values().collect())
    }

    /// Reads what there is of a range that the map names; damage is an outcome, other failures end the start.
    async fn read_range(&self, entry: MapEntry) -> Result<FoundRange, PartitionError> {
        let (mut reply, outcome) = oneshot::channel();
        let shared = self.shared.clone();
        let task = async move {
            let names = RangeStreams::new(entry.table, entry.id);
            let reading = pin!(range_partition::read(&shared, names, &entry.range));
            let read = match select(reading, pin!(reply.closed())).await {
                Either::Left((read, _)) => read.map_err(LoadError::from),
                // Another one has ended the start, or the start was given up.
                Either::Right(_) => return,
            };
            let _ = reply.send(read);
        };
        self.shared.spawner.spawn("read-range", Box::pin(task));
        let broke_off = || PartitionError::Unavailable("the load of a range broke off".to_owned());
        match outcome.await.map_err(|_| broke_off())? {
            Ok(read) => Ok(FoundRange::Whole(Box::new(read))),
            Err(LoadError::Damaged(error)) => Ok(FoundRange::Damaged(error)),
            Err(LoadError::Failed(error)) => Err(error),
        }
    }

    /// Makes this process the owner of all ranges that read, in the map: before it takes any of them. Returns
    /// for whom each is to be loaded. Where there is no space for that, the map stays as it is.
    async fn name_owners(
        &self,
        entries: &[MapEntry],
        found: &[FoundRange],
    ) -> Result<Vec<RangeOwners>, PartitionError> {
        let mut owners = Vec::with_capacity(entries.len());
        let is_spent = self.shared.streams.is_spent().await;
        let mut rest = found;
        // All rows that an operation changes are of one table.
        let tables = entries.chunk_by(|a, b| a.table == b.table);
        for entries in tables.flat_map(|of_table| of_table.chunks(NAMED_COUNT_MAX)) {
            let (found, later) = rest.split_at(entries.len());
            rest = later;
            let mut named = Vec::with_capacity(entries.len());
            for (entry, found) in entries.iter().zip(found) {
                let owner = match found {
                    FoundRange::Damaged(_) => None,
                    FoundRange::Whole(read) => {
                        let seen =
                            newer(read.newest_owner(&self.shared.streams)?, entry.owner.unwrap_or_default());
                        Some(choose_owner(seen, self.shared.life.incarnation))
                    }
                };
                named.push(MapEntry { owner: owner.or(entry.owner), ..entry.clone() });
            }
            let pairs = entries.iter().zip(&named).filter(|(old, new)| old != new);
            let (old, new): (Vec<_>, Vec<_>) = pairs.map(|(old, new)| (old.clone(), new.clone())).unzip();
            let is_named =
                old.is_empty() || (!is_spent && self.change_owners(ChangeMap { old, new }).await?);
            owners.extend(entries.iter().zip(named).map(|(entry, next)| match is_named {
                true => RangeOwners { owner: next.owner, named: next.owner },
                false => RangeOwners { owner: None, named: entry.owner },
            }));
        }
        Ok(owners)
    }

    /// False: there is no space for it, and the map is as it was.
    async fn change_owners(&self, change: ChangeMap) -> Result<bool, PartitionError> {
        match self.change_map(change).await {
            Ok(true) => Ok(true),
            Ok(false) => {
                Err(PartitionError::Unavailable("the partition map has changed meanwhile".to_owned()))
            }
            Err(MapError::Unchanged(error)) if error.is_refusal() => {
                tracing::info!(%error, "the partition map can't name the ranges' owner yet");
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Starts to serve the ranges that are not damaged.
    async fn take_over_ranges(
        &self,
        ranges: Vec<((MapEntry, FoundRange), RangeOwners)>,
    ) -> Result<Vec<(ObjectTable, KeyRange, Owner)>, PartitionError> {
        let take = |((entry, found), owners): ((MapEntry, FoundRange), RangeOwners)| {
            async move {
                let MapEntry { table, id, range, owner: _ } = entry;
                let owner = self.take_over_range((table, id), &range, found, owners).await?;
                Ok((table, range, owner))
            }
            .boxed()
        };
        let takes: Vec<_> = ranges.into_iter().map(take).collect();
        let at_once = if self.shared.streams.are_far() { TAKEN_AT_ONCE_MAX_FAR } else { 1 };
        stream::iter(takes).buffered(at_once).try_collect().await
    }

    /// Starts to serve a range, unless it is damaged.
    async fn take_over_range(
        &self,
        name: RangeName,
        range: &KeyRange,
        found: FoundRange,
        owners: RangeOwners,
    ) -> Result<Owner, PartitionError> {
        let error = match found {
            FoundRange::Damaged(error) => error,
            FoundRange::Whole(read) => {
                match RangePartition::open(self.shared.clone(), name, *read, owners).await {
                    Ok(range) => return Ok(Owner::Serving(range)),
                    Err(LoadError::Failed(error)) => return Err(error),
                    // The end of one of its streams is not certain: nothing was appended behind it.
                    Err(LoadError::Damaged(error)) => error,
                }
            }
        };
        Ok(Owner::Damaged(Arc::new(DamagedRange::found(name, range.clone(), &error))))
    }

    /// Whether these streams of a range are of another process that has not gone.
    pub(super) fn may_act(&self, streams: &[StreamName]) -> bool {
        let owners = streams.iter().filter_map(|stream| self.shared.streams.owner(stream).ok());
        let mut others = owners.filter(|owner| owner.incarnation != self.shared.life.incarnation);
        others.any(|owner| self.shared.streams.has_joined(owner.incarnation))
    }

    /// Removes streams of ranges that the map does not name: children of a split that was cut off, or the
    /// parent of one that was not. Those of a process that has not gone stay: it may be about to name them.
    /// Those of a table with a damaged range stay: they may share what a repair needs; and so do all, if the
    /// map is not first-hand: they go at the next start. Returns the highest id that any stream or range
    /// had.
    async fn remove_leftovers(
        &self,
        entries: &[MapEntry],
        found: &[FoundRange],
        is_first_hand: bool,
    ) -> Result<u64, PartitionError> {
        let mut highest_id = entries.iter().map(|entry| entry.id).max().unwrap_or(FIRST_RANGE_ID);
        let (mut deletes, mut unnamed) = (Vec::new(), Vec::new());
        for table in OBJECT_TABLES {
            let is_damaged = |(entry, found): (&MapEntry, &FoundRange)| {
                entry.table == table && matches!(found, FoundRange::Damaged(_))
            };
            let has_damage = entries.iter().zip(found).any(is_damaged);
            for id in range_ids(&self.shared.streams, table) {
                highest_id = highest_id.max(id);
                let is_named = entries.iter().any(|entry| entry.table == table && entry.id == id);
                if is_named || !is_first_hand || has_damage {
                    continue;
                }
                let streams = self.shared.streams.list(&RangePartition::streams_folder(table, id));
                if is_orphan(is_named, self.may_act(&streams)) {
                    tracing::info!(table = table.name(), id, "removing a range that the map does not name");
                    let one = UnnamedRange { name: (table, id), owner: self.shared.remover(&streams)? };
                    deletes.extend(one.deletes(&streams));
                    unnamed.push(one);
                }
            }
        }
        if !deletes.is_empty() {
            match self.shared.streams.multi_modify(&deletes).await {
                Err(StreamError::DiskFull) => {
                    tracing::info!("there is no space yet to remove ranges that the map does not name");
                    self.unnamed_ranges.lock().extend(unnamed);
                }
                removed => removed?,
            }
        }
        Ok(highest_id)
    }
}

/// What was found of a range at the start.
enum FoundRange {
    Whole(Box<ReadRange>),
    Damaged(PartitionError),
}
