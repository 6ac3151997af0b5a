//! Loading a range partition: take over its streams, read its metadata, open its checkpoints, replay its log.
//!
//! What always holds: after the take-over no former owner can add to the log that is being replayed; any record that
//! does not read fails the load with its place. What the metadata does not name is left over and is removed.

use super::Shared;
use super::data::RangeData;
use super::log_marks::LogMarks;
use crate::checkpoint::Checkpoint;
use crate::commit_log;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::memory_table::MemoryTable;
use crate::metadata::{CheckpointReference, Metadata};
use crate::operation::{ObjectTable, RowChange, RowVersion};
use crate::settings::PlantedFault;
use crate::tree::{Tree, TreeCheckpoint};
use std::sync::Arc;
use stream::{OwnerEpoch, StreamName, Streams};

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

    /// Start of the names of all streams of a range.
    pub(super) fn folder(table: ObjectTable, id: u64) -> String {
        format!("{}/{id}/", table.name())
    }

    /// The stream of the checkpoint with this number.
    pub(super) fn checkpoint(&self, number: u64) -> StreamName {
        StreamName::new(&format!("{}/{number}", self.row_data))
    }
}

/// A range as it was at its last durable moment.
pub(crate) struct Loaded {
    pub(super) metadata: Metadata,
    pub(super) tree: Tree,
    pub(super) last_version: RowVersion,
    pub(super) log_marks: LogMarks,
    pub(super) data: Option<RangeData>,
    /// Changes replayed.
    pub(super) replayed: u64,
}

impl Loaded {
    /// Its rows.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }
}

/// Makes the streams of a range that has never held a row; does nothing if it is there.
pub(super) async fn create(
    streams: &Streams,
    names: &RangeStreams,
    range: KeyRange,
) -> Result<(), PartitionError> {
    if !streams.exists(&names.metadata) && !streams.exists(&names.log) {
        let mut new = vec![names.metadata.clone(), names.log.clone()];
        new.extend(names.data.clone());
        streams.create(&new).await?;
    }
    if read_metadata(streams, &names.metadata).await?.is_none() {
        let epoch = streams.epoch(&names.metadata)?.max(OwnerEpoch(1));
        streams.append(&names.metadata, epoch, vec![Metadata::empty(range).encode()]).await?;
    }
    Ok(())
}

/// Loads a range that is there; it must be for the keys of `range`.
pub(crate) async fn load(
    shared: &Shared,
    names: &RangeStreams,
    range: &KeyRange,
) -> Result<Loaded, PartitionError> {
    let streams = &shared.streams;
    let mut newest = streams.epoch(&names.metadata)?.max(streams.epoch(&names.log)?);
    if let Some(data) = &names.data {
        newest = newest.max(streams.epoch(data)?);
    }
    let epoch = OwnerEpoch(newest.0 + 1);
    streams.take_over(&names.metadata, epoch).await?;
    streams.take_over(&names.log, epoch).await?;
    let data = match &names.data {
        Some(data) => {
            streams.take_over(data, epoch).await?;
            Some(open_data(streams, data)?)
        }
        None => None,
    };
    let damaged = |what| PartitionError::Storage(format!("stream {}: {what}", names.metadata));
    let newest = read_metadata(streams, &names.metadata).await?;
    let mut metadata = newest.ok_or_else(|| damaged("no metadata"))?;
    if metadata.range != *range {
        return Err(damaged("the range is not the one in the partition map"));
    }
    metadata.epoch = epoch;
    let written = streams.append(&names.metadata, epoch, vec![metadata.encode()]).await?;
    streams.trim(&names.metadata, written[0].extent).await?;
    remove_leftovers(streams, names, &metadata).await?;
    let mut checkpoints = Vec::with_capacity(metadata.checkpoints.len());
    for reference in &metadata.checkpoints {
        checkpoints.push(Arc::new(open_checkpoint(shared, reference.clone()).await?));
    }
    let active = Arc::new(MemoryTable::new(&shared.memory));
    let mut dropped = shared.settings.planted_fault == Some(PlantedFault::DroppedLogRecord);
    let replay = replay_log(streams, names, &metadata, &active, &mut dropped);
    let (last_version, log_marks, replayed) = replay.await?;
    let tree = Tree { active, frozen: Vec::new(), checkpoints: checkpoints.into(), fetch_epoch: 0 };
    Ok(Loaded { metadata, tree, last_version, log_marks, data, replayed })
}

/// What a range that begins to serve knows of its blob data: which extents it may name.
pub(super) fn open_data(streams: &Streams, stream: &StreamName) -> Result<RangeData, PartitionError> {
    let listed: Vec<_> = streams.stat(stream)?.extents.into_iter().map(|(extent, _)| extent).collect();
    Ok(RangeData::new(stream.clone(), &listed))
}

/// Opens a checkpoint for the tree.
pub(super) async fn open_checkpoint(
    shared: &Shared,
    reference: CheckpointReference,
) -> Result<TreeCheckpoint, PartitionError> {
    let checkpoint = Checkpoint::open(shared.streams.clone(), shared.cache.clone(), reference.root).await?;
    Ok(TreeCheckpoint::new(Arc::new(checkpoint), reference))
}

/// Removes checkpoints that were cut off while they were written, or replaced and not yet removed.
async fn remove_leftovers(
    streams: &Streams,
    names: &RangeStreams,
    metadata: &Metadata,
) -> Result<(), PartitionError> {
    let kept: Vec<StreamName> =
        metadata.checkpoints.iter().map(|reference| names.checkpoint(reference.number)).collect();
    for stream in streams.list(&format!("{}/", names.row_data)) {
        if !kept.contains(&stream) {
            tracing::info!(%stream, "removing a checkpoint that the range does not refer to");
            streams.delete(&stream).await?;
        }
    }
    Ok(())
}

async fn replay_log(
    streams: &Streams,
    names: &RangeStreams,
    metadata: &Metadata,
    memory: &MemoryTable,
    drop_next: &mut bool,
) -> Result<(RowVersion, LogMarks, u64), PartitionError> {
    let mut last_version = metadata.flushed_version;
    let mut marks = LogMarks::default();
    let mut replayed = 0;
    let mut replay = streams.replay(&names.log, metadata.log_start)?;
    while let Some((location, group)) = replay.next().await? {
        marks.note(location, last_version);
        let operations = commit_log::parse_group(&group).map_err(|error| {
            let place = format!("extent {} at {}", location.extent, location.offset);
            PartitionError::Storage(format!("stream {}, {place}: {error}", names.log))
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
    let mut replay = streams.replay(stream, None)?;
    while let Some((_, block)) = replay.next().await? {
        let metadata = Metadata::decode(&block)
            .map_err(|error| PartitionError::Storage(format!("stream {stream}: {error}")))?;
        newest = Some(metadata);
    }
    Ok(newest)
}
