//! Opening: the partition map says which ranges there are; each is loaded, and what it does not name is removed.
//!
//! What always holds: the ranges of a table cover every key once, or nothing is served. A table without rows in the
//! map is new, or from before there was a map: then it is one range with the first id. Streams of any other range
//! while the map names none would mean that the map is lost: that is damage, and nothing is removed.

use super::{HandOverCounts, PartitionServer};
use crate::dead_containers::ReadMarks;
use crate::error::PartitionError;
use crate::key::{KeyRange, Span};
use crate::operation::{OBJECT_TABLES, ObjectTable};
use crate::partition_map::{MapEntry, ReadMap};
use crate::range_partition::{RangePartition, Shared};
use crate::routes::Routes;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use stream::{StreamChange, StreamName, Streams};
use tokio::sync::Notify;

/// The partition map's only range and the first range of each table have this id.
pub(crate) const FIRST_RANGE_ID: u64 = 1;

impl PartitionServer {
    /// Loads every range that the partition map names.
    pub(crate) async fn open(shared: Shared) -> Result<Arc<Self>, PartitionError> {
        let everything = KeyRange::all();
        RangePartition::create(&shared, ObjectTable::PartitionMap, FIRST_RANGE_ID, everything.clone())
            .await?;
        let map =
            RangePartition::open(shared.clone(), ObjectTable::PartitionMap, FIRST_RANGE_ID, &everything)
                .await?;
        let mut entries = read_map(&map).await?;
        let mut marks = ReadMarks::new();
        map.scan(&[Span::Range(ReadMarks::range())], &mut marks).await?;
        let shared = Shared { dead: Arc::new(marks.into_known(&*shared.clock)?), ..shared };
        let mut routes = Routes::default();
        routes.add(ObjectTable::PartitionMap, everything, map);
        let server = Arc::new(PartitionServer {
            shared,
            routes: ArcSwap::from_pointee(routes.clone()),
            handed_over: Notify::new(),
            next_range_id: tokio::sync::Mutex::new(FIRST_RANGE_ID + 1),
            failed_heirs: Mutex::default(),
            balancing: tokio::sync::Mutex::new(()),
            closing: AtomicBool::new(false),
            counts: Mutex::new(HandOverCounts::default()),
        });
        entries.extend(server.add_new_tables(&entries).await?);
        check_cover(&entries)?;
        let mut highest_id = server.remove_leftovers(&entries).await?;
        for entry in entries {
            let range =
                RangePartition::open(server.shared.clone(), entry.table, entry.id, &entry.range).await?;
            highest_id = highest_id.max(entry.id);
            routes.add(entry.table, entry.range, range);
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
            if let Some(lost) = range_ids(&self.shared.streams, table).range(FIRST_RANGE_ID + 1..).next() {
                return Err(PartitionError::Storage(format!(
                    "the partition map names no range of table {}, but there are streams of its range {lost}",
                    table.name()
                )));
            }
            let entry = MapEntry { table, id: FIRST_RANGE_ID, range: KeyRange::all() };
            RangePartition::create(&self.shared, table, entry.id, entry.range.clone()).await?;
            self.change_map(Vec::new(), vec![entry.clone()]).await?;
            added.push(entry);
        }
        Ok(added)
    }

    /// Removes streams of ranges that the map does not name: children of a split that was cut off, or the parent of
    /// one that was not. Returns the highest id that any stream had.
    async fn remove_leftovers(&self, entries: &[MapEntry]) -> Result<u64, PartitionError> {
        let mut highest_id = FIRST_RANGE_ID;
        let mut deletes = Vec::new();
        for table in OBJECT_TABLES {
            for id in range_ids(&self.shared.streams, table) {
                highest_id = highest_id.max(id);
                if !entries.iter().any(|entry| entry.table == table && entry.id == id) {
                    tracing::info!(table = table.name(), id, "removing a range that the map does not name");
                    let streams = self.shared.streams.list(&format!("{}/{id}/", table.name()));
                    deletes.extend(streams.into_iter().map(StreamChange::Delete));
                }
            }
        }
        if !deletes.is_empty() {
            self.shared.streams.multi_modify(&deletes).await?;
        }
        Ok(highest_id)
    }
}

async fn read_map(map: &RangePartition) -> Result<Vec<MapEntry>, PartitionError> {
    let mut read = ReadMap::default();
    map.scan(&[Span::Range(ReadMap::range())], &mut read).await?;
    read.entries()
}

/// Ids of the ranges of which there are streams.
pub(crate) fn range_ids(streams: &Streams, table: ObjectTable) -> BTreeSet<u64> {
    let folder = format!("{}/", table.name());
    let id = |stream: StreamName| stream.as_str().strip_prefix(&folder)?.split('/').next()?.parse().ok();
    streams.list(&folder).into_iter().filter_map(id).collect()
}

/// The ranges of each table cover every key once, and no two have the same id.
pub(crate) fn check_cover(entries: &[MapEntry]) -> Result<(), PartitionError> {
    let damage = |what: String| PartitionError::Storage(format!("the partition map is damaged: {what}"));
    let mut routes = Routes::default();
    let mut ids = BTreeMap::new();
    for entry in entries {
        routes.add(entry.table, entry.range.clone(), ());
        if ids.insert((entry.table, entry.id), ()).is_some() {
            return Err(damage(format!("two ranges of table {} have id {}", entry.table.name(), entry.id)));
        }
    }
    OBJECT_TABLES.into_iter().try_for_each(|table| routes.check(table)).map_err(damage)
}
