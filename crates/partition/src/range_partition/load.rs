//! Loading a range partition: first it is read (its metadata, its checkpoints' roots, its log), then taken
//! over.
//!
//! What always holds: nothing of a range is written or removed before all that its load needs was read, so a
//! damaged range stays as it is; any record that does not read fails the load with its place. Metadata or
//! a log that grew between the read and the take-over, after which no former owner can add to it, fail the
//! load. What the metadata does not name is an orphan and is removed last. The owner is chosen by the caller.
//! Where there is no space, nothing is written: the range goes on as the owner that it had, which nobody
//! else can be, as one process at a time has the folder.

use super::data::RangeData;
use super::range_tree::log_positions::LogPositions;
use super::shared::Shared;
use crate::checkpoint::{Caching, Checkpoint};
use crate::commit_log;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::map::choose_owner::{choose_owner, newer, owner_without_space};
use crate::map::container_marks::MarkRows;
use crate::memory::memory_table::MemoryTable;
use crate::operation::{ObjectTable, RowChange, RowRef, RowVersion, Scan, Visit};
use crate::settings::PlantedFault;
use crate::tree::merging_iterator::MergingIterator;
use crate::tree::metadata::{CheckpointReference, Metadata};
use crate::tree::{Tree, TreeCheckpoint};
use ::stream::{Owner, StreamError, StreamName, StreamStat, Streams};
use base::{BoxFuture, give_way};
use futures_util::future::join;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use std::sync::Arc;

/// Checkpoints of a range that are opened side by side, beside the replay of its log, in a store far away: it
/// takes many milliseconds for each of their few reads. Those of a disk are opened one by one.
const OPENED_AT_ONCE_MAX: usize = 8;
/// Bytes of log that are replayed before others may run: some hundred microseconds' worth, on a worker that
/// also runs what keeps a process's lease.
const REPLAYED_AT_ONCE_BYTES: usize = 64 << 10;

/// Names of the streams of one range.
pub(crate) struct RangeStreams {
    pub(super) metadata: StreamName,
    pub(super) log: StreamName,
    /// Blob data, for tables that have it.
    pub(super) data: Option<StreamName>,
    /// Each checkpoint is a stream of its own below this name.
    row_data: String,
}

impl RangeStreams {
    pub(crate) fn new(table: ObjectTable, id: u64) -> Self {
        let folder = RangeStreams::folder(table, id);
        let name = |purpose| format!("{folder}{purpose}");
        RangeStreams {
            metadata: StreamName::new(&name("metadata")),
            log: StreamName::new(&name("log")),
            data: table.has_data().then(|| StreamName::new(&name("data"))),
            row_data: name("row_data"),
        }
    }

    /// Its metadata.
    pub(crate) fn metadata(&self) -> &StreamName {
        &self.metadata
    }

    /// Its commit log.
    pub(crate) fn log(&self) -> &StreamName {
        &self.log
    }

    /// Its blob data, if it may have some.
    pub(crate) fn data(&self) -> Option<&StreamName> {
        self.data.as_ref()
    }

    /// Start of the names of its checkpoints' streams.
    pub(crate) fn row_data(&self) -> &str {
        &self.row_data
    }

    /// Start of the names of all streams of a range.
    pub(crate) fn folder(table: ObjectTable, id: u64) -> String {
        format!("{}/{id}/", table.name())
    }

    /// The stream of the checkpoint with this number.
    pub(crate) fn checkpoint(&self, number: u64) -> StreamName {
        StreamName::new(&format!("{}/{number}", self.row_data))
    }
}

/// A range as it was at its last durable moment.
pub(crate) struct Loaded {
    pub(super) metadata: Metadata,
    pub(super) tree: Tree,
    pub(super) last_version: RowVersion,
    pub(super) log_positions: LogPositions,
    pub(super) data: Option<RangeData>,
    /// Changes replayed.
    pub(super) replayed: u64,
    /// Orphans that there was no space to remove.
    pub(super) unused: Vec<u64>,
    /// For whom its streams are changed.
    pub(super) owner: Owner,
    /// The owner that the partition map names, if it names one.
    pub(super) named_owner: Option<Owner>,
}

/// A range as its streams hold it, before anything was written for it.
pub(crate) struct ReadRange {
    names: RangeStreams,
    metadata: Metadata,
    tree: Tree,
    last_version: RowVersion,
    log_positions: LogPositions,
    replayed: u64,
    /// What was read of its metadata, and what was replayed.
    metadata_read: StreamStat,
    log: StreamStat,
}

/// For whom a range is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeOwners {
    /// The owner that takes it. `None`: there was no space to say so, and it goes on for the one that it had.
    pub(crate) owner: Option<Owner>,
    /// The owner that the partition map names.
    pub(crate) named: Option<Owner>,
}

/// Why a range is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoadError {
    /// What is stored of it does not read: the range can't be served until it is repaired, others can.
    Damaged(PartitionError),
    /// It says nothing about what is stored: the disk is full, the layer closes, a write failed.
    Failed(PartitionError),
}

impl From<PartitionError> for LoadError {
    fn from(error: PartitionError) -> Self {
        match error {
            PartitionError::Storage(_) => LoadError::Damaged(error),
            other => LoadError::Failed(other),
        }
    }
}

impl From<StreamError> for LoadError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::WritesStopped(_) | StreamError::Folder(_) => LoadError::Failed(error.into()),
            other => PartitionError::from(other).into(),
        }
    }
}

impl From<LoadError> for PartitionError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Damaged(error) | LoadError::Failed(error) => error,
        }
    }
}

/// Says in which stream something does not read. Other failures stay as they are.
fn in_stream(stream: &StreamName) -> impl Fn(PartitionError) -> PartitionError {
    move |error| match error {
        PartitionError::Storage(what) => PartitionError::Storage(format!("stream {stream}: {what}")),
        other => other,
    }
}

/// Makes the streams of a range that has never held a row; does nothing if it is there, readable or not.
pub(super) async fn create(
    shared: &Shared,
    names: &RangeStreams,
    range: KeyRange,
) -> Result<(), PartitionError> {
    let streams = &shared.streams;
    if !streams.exists(&names.metadata) && !streams.exists(&names.log) {
        let mut new = vec![names.metadata.clone(), names.log.clone()];
        new.extend(names.data.clone());
        streams.create(&new, Owner::first(shared.life.incarnation)).await?;
    }
    // What can't be asked for its length is there, and its load says what is wrong with it.
    let has_nothing = streams.stat(&names.metadata).is_ok_and(|stat| is_empty(&stat));
    if has_nothing {
        // A start was cut off between the two.
        let former = streams.owner(&names.metadata)?;
        let wanted = choose_owner(former, shared.life.incarnation);
        let owner = match streams.take_over(&names.metadata, wanted).await {
            Err(StreamError::DiskFull) => {
                owner_without_space(former, Some(wanted), streams.owner(&names.metadata)?)
            }
            taken => taken.map(|()| wanted)?,
        };
        streams.append(&names.metadata, owner, vec![Metadata::empty(range).encode()]).await?;
    }
    Ok(())
}

/// Reads a range that is there; it must be for the keys of `range`. Changes nothing.
pub(crate) async fn read(
    shared: &Shared,
    names: RangeStreams,
    range: &KeyRange,
) -> Result<ReadRange, PartitionError> {
    let streams = &shared.streams;
    let damaged = |what| PartitionError::Storage(format!("stream {}: {what}", names.metadata));
    let metadata_read = streams.stat(&names.metadata)?;
    let newest = read_metadata(streams, &names.metadata).await?;
    let metadata = newest.ok_or_else(|| damaged("no metadata"))?;
    if metadata.range != *range {
        return Err(damaged("the range is not the one in the partition map"));
    }
    let active = Arc::new(MemoryTable::new(&shared.memory));
    let mut dropped = shared.settings.planted_fault == Some(PlantedFault::DroppedLogRecord);
    let in_log = in_stream(&names.log);
    let log = streams.stat(&names.log).map_err(|error| in_log(error.into()))?;
    let replay = replay_log(streams, &names, &metadata, &active, &mut dropped);
    let (checkpoints, replayed) = match streams.are_far() {
        true => {
            let opening = open_checkpoints(shared, &names, &metadata, OPENED_AT_ONCE_MAX);
            let (opened, replayed) = join(opening, replay).await;
            (opened?, replayed)
        }
        false => (open_checkpoints(shared, &names, &metadata, 1).await?, replay.await),
    };
    let (last_version, log_positions, replayed) = replayed.map_err(in_log)?;
    let tree = Tree { active, frozen: Vec::new(), checkpoints: checkpoints.into(), fetch_epoch: 0 };
    Ok(ReadRange { names, metadata, tree, last_version, log_positions, replayed, metadata_read, log })
}

/// The partition map's range has the marks of deleted containers.
impl MarkRows for ReadRange {
    fn show<'a>(
        &'a self,
        keys: &'a KeyRange,
        scan: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<(), PartitionError>> {
        Box::pin(self.scan(keys, scan))
    }
}

impl ReadRange {
    /// Its newest version.
    pub(crate) fn last_version(&self) -> RowVersion {
        self.last_version
    }

    /// Shows its rows in `keys`.
    pub(crate) async fn scan(&self, keys: &KeyRange, scan: &mut dyn Scan) -> Result<(), PartitionError> {
        let newest = RowVersion(u64::MAX);
        let mut cursor = MergingIterator::over_tree(&self.tree, keys, newest, Caching::Keep).await?;
        let mut scratch = Vec::new();
        loop {
            let row =
                if scan.needs_overflow() { cursor.whole_row(&mut scratch).await? } else { cursor.row() };
            let Some(row) = row else { return Ok(()) };
            if let Some(value) = row.value
                && scan.visit(RowRef { key: row.key, version: row.version, value }) == Visit::StopBefore
            {
                return Ok(());
            }
            cursor.step().await?;
        }
    }

    /// Of its streams' owners the newest.
    pub(crate) fn newest_owner(&self, streams: &Streams) -> Result<Owner, StreamError> {
        newest_owner(streams, &self.names)
    }

    /// Makes `owner` its owner: from here on no former one can add to it. Removes what it does not refer to.
    /// On a full disk nothing of this is done that finds no space: each start would use up some of what is
    /// left; without an owner neither.
    pub(super) async fn take_over(
        mut self,
        shared: &Shared,
        RangeOwners { owner, named }: RangeOwners,
    ) -> Result<Loaded, LoadError> {
        let streams = &shared.streams;
        let former = self.newest_owner(streams)?;
        let taken = match owner {
            Some(owner) if !streams.is_spent().await => {
                self.own_streams(streams, owner).await.map(|()| owner)
            }
            _ => Err(PartitionError::DiskFull.into()),
        };
        let owner = match taken {
            Err(LoadError::Failed(PartitionError::DiskFull)) => {
                let log = &self.names.log;
                tracing::info!(%log, "there is no space to take the range over: it goes on under its former epoch");
                owner_without_space(former, owner, self.newest_owner(streams)?)
            }
            taken => taken?,
        };
        self.metadata.epoch = owner.epoch;
        let ReadRange { names, mut metadata, tree, last_version, log_positions, replayed, .. } = self;
        let data = names.data.as_ref().map(|data| open_data(streams, data)).transpose()?;
        let unused = remove_leftovers(streams, &names, owner, &metadata).await?;
        // Their names are taken.
        let free_from = unused.iter().map(|number| number + 1).max();
        metadata.next_checkpoint = metadata.next_checkpoint.max(free_from.unwrap_or(0));
        let named_owner = named;
        Ok(Loaded { metadata, tree, last_version, log_positions, data, replayed, unused, owner, named_owner })
    }

    /// Makes `owner` the owner of all streams, and the metadata say so.
    async fn own_streams(&mut self, streams: &Streams, owner: Owner) -> Result<(), LoadError> {
        self.metadata.epoch = owner.epoch;
        let names = &self.names;
        streams.take_over(&names.metadata, owner).await?;
        streams.take_over(&names.log, owner).await?;
        for (stream, read) in [(&names.metadata, &self.metadata_read), (&names.log, &self.log)] {
            if streams.stat(stream)? != *read {
                let what = format!("stream {stream}: another owner has appended while it was read");
                return Err(LoadError::Failed(PartitionError::Unavailable(what)));
            }
        }
        if let Some(data) = &names.data {
            streams.take_over(data, owner).await?;
        }
        let written = streams.append(&names.metadata, owner, vec![self.metadata.encode()]).await?;
        if let Some(place) = written.first() {
            streams.trim(&names.metadata, owner, place.extent).await?;
        }
        Ok(())
    }
}

/// Of the owners of a range's streams the newest.
pub(crate) fn newest_owner(streams: &Streams, names: &RangeStreams) -> Result<Owner, StreamError> {
    let mut newest = Owner::default();
    for stream in [Some(&names.metadata), Some(&names.log), names.data.as_ref()].into_iter().flatten() {
        if streams.exists(stream) {
            newest = newer(newest, streams.owner(stream)?);
        }
    }
    Ok(newest)
}

/// What a range that begins to serve knows of its blob data: which extents it may name.
pub(super) fn open_data(streams: &Streams, stream: &StreamName) -> Result<RangeData, PartitionError> {
    let listed: Vec<_> = streams.stat(stream)?.extents.into_iter().map(|(extent, _)| extent).collect();
    Ok(RangeData::new(stream.clone(), &listed))
}

/// Opens the checkpoints that the metadata name, in their order.
async fn open_checkpoints(
    shared: &Shared,
    names: &RangeStreams,
    metadata: &Metadata,
    at_once: usize,
) -> Result<Vec<Arc<TreeCheckpoint>>, PartitionError> {
    let open = |reference: &CheckpointReference| {
        let (stream, opened) =
            (names.checkpoint(reference.number), open_checkpoint(shared, reference.clone()));
        async move { opened.await.map(Arc::new).map_err(in_stream(&stream)) }.boxed()
    };
    let opening: Vec<_> = metadata.checkpoints.iter().map(open).collect();
    stream::iter(opening).buffered(at_once).try_collect().await
}

/// Opens a checkpoint for the tree.
pub(super) async fn open_checkpoint(
    shared: &Shared,
    reference: CheckpointReference,
) -> Result<TreeCheckpoint, PartitionError> {
    let checkpoint = Checkpoint::open(shared.streams.clone(), shared.cache.clone(), reference.root).await?;
    Ok(TreeCheckpoint::new(Arc::new(checkpoint), reference))
}

/// Removes checkpoints that were cut off while they were written, or replaced and not yet removed. Returns
/// the numbers of those that a full disk keeps.
async fn remove_leftovers(
    streams: &Streams,
    names: &RangeStreams,
    owner: Owner,
    metadata: &Metadata,
) -> Result<Vec<u64>, PartitionError> {
    let kept: Vec<StreamName> =
        metadata.checkpoints.iter().map(|reference| names.checkpoint(reference.number)).collect();
    let mut unused = Vec::new();
    for stream in streams.list(&format!("{}/", names.row_data)) {
        if kept.contains(&stream) {
            continue;
        }
        tracing::info!(%stream, "removing a checkpoint that the range does not refer to");
        match streams.delete(&stream, owner).await {
            // Its extents may be what stays: then the stream layer removes them later.
            Err(StreamError::DiskFull) => {
                let number = stream.as_str().rsplit('/').next().and_then(|number| number.parse::<u64>().ok());
                unused.extend(number.filter(|_| streams.exists(&stream)));
            }
            deleted => deleted?,
        }
    }
    Ok(unused)
}

async fn replay_log(
    streams: &Streams,
    names: &RangeStreams,
    metadata: &Metadata,
    memory: &MemoryTable,
    drop_next: &mut bool,
) -> Result<(RowVersion, LogPositions, u64), PartitionError> {
    let mut last_version = metadata.flushed_version;
    let mut marks = LogPositions::default();
    let mut replayed = 0;
    let mut replay = streams.replay(&names.log, metadata.log_start)?;
    let mut at_once_bytes = 0;
    while let Some((location, group)) = replay.next().await? {
        at_once_bytes += group.len();
        if at_once_bytes >= REPLAYED_AT_ONCE_BYTES {
            at_once_bytes = 0;
            give_way().await;
        }
        marks.note(location, last_version);
        let operations = commit_log::parse_group(&group).map_err(|error| {
            let place = format!("extent {} at {}", location.extent, location.offset);
            PartitionError::Storage(format!("{place}: {error}"))
        })?;
        for (version, changes) in operations {
            if version <= last_version {
                continue;
            }
            last_version = version;
            if std::mem::take(drop_next) {
                continue;
            }
            for change in changes {
                replayed += 1;
                match change {
                    RowChange::Put { key, value } => memory.insert(key.as_bytes(), version, Some(value)),
                    RowChange::Delete { key } => memory.insert(key.as_bytes(), version, None),
                }
            }
        }
    }
    Ok((last_version, marks, replayed))
}

/// The newest metadata in the stream.
pub(crate) async fn read_metadata(
    streams: &Streams,
    stream: &StreamName,
) -> Result<Option<Metadata>, PartitionError> {
    let mut newest = None;
    let in_metadata = in_stream(stream);
    let mut replay = streams.replay(stream, None).map_err(|error| in_metadata(error.into()))?;
    while let Some((_, block)) = replay.next().await.map_err(|error| in_metadata(error.into()))? {
        let metadata = Metadata::decode(&block);
        newest = Some(metadata.map_err(|error| in_metadata(PartitionError::Storage(error.to_string())))?);
    }
    Ok(newest)
}

/// Whether nothing was ever appended.
pub(crate) fn is_empty(stat: &StreamStat) -> bool {
    stat.extents.iter().all(|(_, size_bytes)| *size_bytes == 0)
}
