//! Checks what lies in the streams: the partition map, then each range that it names.

use super::folder_check::{Damage, FolderCheck};
use super::pieces::FindMissing;
use super::words::{COPY_MENDED, MAP_MENDED, NO_START, NOT_SERVED};
use crate::blob_data::data_ends::DataEnds;
use crate::checkpoint::Checkpoint;
use crate::commit_log;
use crate::error::PartitionError;
use crate::key::describe::describe_range;
use crate::key::{KeyRange, parse_row_key};
use crate::map::dead_containers::DeadContainers;
use crate::map::dead_filter::AliveRows;
use crate::map::map_copy::copy_name;
use crate::map::partition_map::MapEntry;
use crate::operation::{OBJECT_TABLES, ObjectTable, RowVersion, Scan};
use crate::partition_server::{FIRST_RANGE_ID, MapLook, look_at_map, range_ids};
use crate::range_partition::{RangeStreams, Shared, read, read_metadata};
use std::collections::BTreeSet;
use stream::{ExtentId, Location, StreamDamage, StreamName};

/// One check under way.
pub(super) struct RangeCheck<'a> {
    shared: Shared,
    stream_damages: &'a [StreamDamage],
    /// Blocks whose damage is reported with its meaning.
    explained: Vec<(ExtentId, u64)>,
    /// Checkpoints that were read: after a split two ranges share them.
    walked: BTreeSet<(Location, bytes::Bytes)>,
    /// Nobody reads their rows, which may name what has gone.
    dead: DeadContainers,
}

impl<'a> RangeCheck<'a> {
    pub(super) fn new(shared: Shared, stream_damages: &'a [StreamDamage]) -> Self {
        RangeCheck {
            shared,
            stream_damages,
            explained: Vec::new(),
            walked: BTreeSet::new(),
            dead: DeadContainers::default(),
        }
    }

    /// Blocks whose damage is reported with its meaning.
    pub(super) fn explained(self) -> Vec<(ExtentId, u64)> {
        self.explained
    }

    /// Checks everything.
    pub(super) async fn run(&mut self, found: &mut FolderCheck) {
        let everything = KeyRange::all();
        self.check_range(ObjectTable::PartitionMap, FIRST_RANGE_ID, Some(&everything), found).await;
        let entries = self.check_map(found).await;
        for table in OBJECT_TABLES {
            match &entries {
                Some(entries) => {
                    for entry in entries.iter().filter(|entry| entry.table == table) {
                        self.check_range(table, entry.id, Some(&entry.range), found).await;
                    }
                }
                // Without the map it is not known which of them count: all are looked at.
                None => {
                    for id in range_ids(&self.shared.streams, table) {
                        self.check_range(table, id, None, found).await;
                    }
                }
            }
        }
    }

    fn tell(
        &self,
        found: &mut FolderCheck,
        place: String,
        error: &PartitionError,
        meaning: String,
        rows: Option<(ObjectTable, KeyRange)>,
    ) {
        found.damages.push(Damage { place, problem: error.to_string(), meaning, rows });
    }

    /// Whether blocks of this stream are damaged: then those are reported, with their places.
    fn is_told(&self, stream: &StreamName) -> bool {
        self.stream_damages.iter().any(|damage| damage.streams.contains(stream))
    }

    /// Checks the partition map's two places. Returns its entries as the server would find them.
    async fn check_map(&mut self, found: &mut FolderCheck) -> Option<Vec<MapEntry>> {
        match look_at_map(&self.shared).await {
            Ok(MapLook { range, copy, entries, dead }) => {
                self.dead = dead;
                let name = copy_name();
                if let Some(error) = range
                    && !self.is_told(RangeStreams::new(ObjectTable::PartitionMap, FIRST_RANGE_ID).metadata())
                    && !self.is_told(RangeStreams::new(ObjectTable::PartitionMap, FIRST_RANGE_ID).log())
                {
                    self.tell(found, "the partition map".to_owned(), &error, MAP_MENDED.to_owned(), None);
                }
                if let Some(error) = copy
                    && !self.is_told(&name)
                {
                    self.tell(
                        found,
                        "the partition map's copy".to_owned(),
                        &error,
                        COPY_MENDED.to_owned(),
                        None,
                    );
                }
                Some(entries)
            }
            Err(error) => {
                self.tell(found, "the partition map".to_owned(), &error, NO_START.to_owned(), None);
                None
            }
        }
    }

    async fn check_range(
        &mut self,
        table: ObjectTable,
        id: u64,
        expected: Option<&KeyRange>,
        found: &mut FolderCheck,
    ) {
        found.range_count += 1;
        let rows_of = |keys: Option<&KeyRange>| keys.map(|keys| (table, keys.clone()));
        let names = RangeStreams::new(table, id);
        let place = format!("range {id} of table {}", table.name());
        let streams = self.shared.streams.clone();
        if !streams.exists(names.metadata()) && table == ObjectTable::PartitionMap {
            return;
        }
        let metadata = match read_metadata(&streams, names.metadata()).await {
            Ok(Some(metadata)) => metadata,
            Ok(None) => {
                let error = PartitionError::Storage("it has no metadata".to_owned());
                let rows = expected.map_or_else(|| "its keys".to_owned(), describe_range);
                return self.tell(found, place, &error, not_served(table, &rows), rows_of(expected));
            }
            Err(_) if self.is_told(names.metadata()) => return,
            Err(error) => {
                let rows = expected.map_or_else(|| "its keys".to_owned(), describe_range);
                let meaning = not_served(table, &rows);
                return self.tell(found, format!("{place}, metadata"), &error, meaning, rows_of(expected));
            }
        };
        if expected.is_some_and(|expected| *expected != metadata.range) {
            let error = PartitionError::Storage("the partition map gives it other keys".to_owned());
            let rows = expected.map_or_else(|| "its keys".to_owned(), describe_range);
            self.tell(found, place.clone(), &error, not_served(table, &rows), rows_of(expected));
        }
        for reference in &metadata.checkpoints {
            if !self.walked.insert((reference.root, reference.limit.start.clone())) {
                continue;
            }
            let place = format!("{place}, checkpoint {}", reference.number);
            let (cache, root) = (self.shared.cache.clone(), reference.root);
            match Checkpoint::open(streams.clone(), cache, root).await {
                Err(error) => {
                    self.explained.push((root.extent, root.offset));
                    let rows = describe_range(&metadata.range);
                    self.tell(found, place, &error, not_served(table, &rows), rows_of(Some(&metadata.range)));
                }
                Ok(checkpoint) => {
                    let checked = checkpoint.check(&reference.limit.start).await;
                    found.row_count += checked.row_count;
                    for damage in checked.damages {
                        self.explained.extend(damage.block.map(|block| (block.extent, block.offset)));
                        let rows = describe_range(&damage.keys);
                        let meaning = format!(
                            "rows of table {} from {rows} can't be read, unless they are newer than this checkpoint; \
                             requests for them fail, all others are answered",
                            table.name()
                        );
                        let (place, rows) = (place.clone(), rows_of(Some(&damage.keys)));
                        found.damages.push(Damage { place, problem: damage.problem, meaning, rows });
                    }
                }
            }
        }
        match self.count_log(&names, metadata.log_start, metadata.flushed_version).await {
            Ok(count) => found.log_change_count += count,
            Err(_) if self.is_told(names.log()) => {}
            Err(error) => {
                let rows = describe_range(&metadata.range);
                let meaning = not_served(table, &rows);
                self.tell(found, format!("{place}, log"), &error, meaning, rows_of(Some(&metadata.range)));
            }
        }
        if table.has_data() {
            self.check_pieces(table, names, &metadata.range, &place, found).await;
        }
    }

    /// Looks whether what rows name as blob data can be there. What does not read of them is reported
    /// already.
    async fn check_pieces(
        &self,
        table: ObjectTable,
        names: RangeStreams,
        keys: &KeyRange,
        place: &str,
        found: &mut FolderCheck,
    ) {
        let ends = names.data().map(|stream| DataEnds::of(&self.shared.streams, stream));
        let Some(Ok(ends)) = ends else { return };
        // Rows of deleted containers keep nothing: they are never read.
        let mut alive = AliveRows::new(self.dead.filter(table), keys.clone(), FindMissing::new(ends));
        if let Ok(range) = read(&self.shared, names, keys).await {
            // What was found before damage is reported all the same.
            while let Ok(Some(part)) = alive.next_part().await
                && range.scan(&part, &mut alive).await.is_ok()
            {}
        }
        let missing = alive.into_scan();
        let meaning = "requests for these bytes fail; a repair removes what names them".to_owned();
        for (key, problem) in missing.names {
            let name = parse_row_key(&key);
            let keys =
                name.map(|name| KeyRange::partition(&name.account, name.container_id, &name.partition_name));
            let rows = keys.as_ref().map_or_else(|| "its keys".to_owned(), describe_range);
            found.damages.push(Damage {
                place: format!("{place}, blob data"),
                problem: format!("rows from {rows} name {problem}"),
                meaning: meaning.clone(),
                rows: keys.map(|keys| (table, keys)),
            });
        }
        if missing.untold_count > 0 {
            let problem = format!("{} more names are of blob data that is not there", missing.untold_count);
            found.damages.push(Damage { place: format!("{place}, blob data"), problem, meaning, rows: None });
        }
    }

    /// Counts the changes of a log that a start would replay.
    async fn count_log(
        &self,
        names: &RangeStreams,
        from: Option<Location>,
        flushed: RowVersion,
    ) -> Result<u64, PartitionError> {
        let mut replay = self.shared.streams.replay(names.log(), from)?;
        let (mut last, mut count) = (flushed, 0);
        while let Some((_, group)) = replay.next().await? {
            let operations = commit_log::parse_group(&group)
                .map_err(|error| PartitionError::Storage(format!("a group of operations: {error}")))?;
            for (version, changes) in operations {
                if version > last {
                    last = version;
                    count += changes.len() as u64;
                }
            }
        }
        Ok(count)
    }
}

/// Shows the rows of a table to `scan`, as far as they can be read.
pub(super) async fn scan_table<S: Scan>(shared: &Shared, table: ObjectTable, mut scan: S) -> S {
    let Ok(MapLook { entries, dead, .. }) = look_at_map(shared).await else { return scan };
    for entry in entries.iter().filter(|entry| entry.table == table) {
        let names = RangeStreams::new(table, entry.id);
        let Ok(range) = read(shared, names, &entry.range).await else { continue };
        let mut alive = AliveRows::new(dead.filter(table), entry.range.clone(), scan);
        while let Ok(Some(part)) = alive.next_part().await
            && range.scan(&part, &mut alive).await.is_ok()
        {}
        scan = alive.into_scan();
    }
    scan
}

/// What it means for the rows of a range that it does not load.
fn not_served(table: ObjectTable, rows: &str) -> String {
    match table {
        ObjectTable::PartitionMap => MAP_MENDED.to_owned(),
        _ => format!("rows of table {} from {rows} can't be told; {NOT_SERVED}", table.name()),
    }
}
