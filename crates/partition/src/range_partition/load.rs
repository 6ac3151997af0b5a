//! Loading a range partition: take over its streams, read its metadata, replay its log.
//!
//! What always holds: after the take-over no former owner can add to the log that is being replayed; any record that
//! does not read fails the load with its place.

use crate::commit_log;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::memory_table::MemoryTable;
use crate::metadata::Metadata;
use crate::operation::{ObjectTable, RowChange, RowVersion};
use stream::{OwnerEpoch, StreamName, Streams};

/// Names of the streams of one range.
pub(crate) struct RangeStreams {
    pub(crate) metadata: StreamName,
    pub(crate) log: StreamName,
}

impl RangeStreams {
    pub(crate) fn new(table: ObjectTable, id: u64) -> Self {
        let name = |purpose| StreamName::new(&format!("{}/{id}/{purpose}", table.name()));
        RangeStreams { metadata: name("metadata"), log: name("log") }
    }
}

/// A range as it was at its last durable moment.
pub(crate) struct Loaded {
    pub(crate) metadata: Metadata,
    pub(crate) memory: MemoryTable,
    pub(crate) last_version: RowVersion,
    /// Changes replayed.
    pub(crate) rows: u64,
}

pub(crate) async fn load(
    streams: &Streams,
    names: &RangeStreams,
    range: KeyRange,
) -> Result<Loaded, PartitionError> {
    if !streams.exists(&names.metadata) && !streams.exists(&names.log) {
        streams.create(&[names.metadata.clone(), names.log.clone()]).await?;
    }
    let epoch = OwnerEpoch(streams.epoch(&names.metadata)?.0.max(streams.epoch(&names.log)?.0) + 1);
    streams.take_over(&names.metadata, epoch).await?;
    streams.take_over(&names.log, epoch).await?;
    let mut metadata = read_metadata(streams, &names.metadata).await?.unwrap_or(Metadata {
        epoch,
        range,
        log_start: None,
        last_version: RowVersion(0),
    });
    metadata.epoch = epoch;
    let written = streams.append(&names.metadata, epoch, vec![metadata.encode()]).await?;
    streams.trim(&names.metadata, written[0].extent).await?;
    let memory = MemoryTable::default();
    let mut last_version = metadata.last_version;
    let mut rows = 0;
    let mut replay = streams.replay(&names.log, metadata.log_start)?;
    while let Some((location, group)) = replay.next().await? {
        let operations = commit_log::parse_group(&group).map_err(|error| {
            let place = format!("extent {} at {}", location.extent, location.offset);
            PartitionError::Storage(format!("stream {}, {place}: {error}", names.log))
        })?;
        for (version, changes) in operations {
            if version <= last_version {
                continue;
            }
            last_version = version;
            for change in changes {
                rows += 1;
                match change {
                    RowChange::Put { key, value } => memory.insert(key.as_bytes(), version, Some(value)),
                    RowChange::Delete { key } => memory.insert(key.as_bytes(), version, None),
                }
            }
        }
    }
    Ok(Loaded { metadata, memory, last_version, rows })
}

async fn read_metadata(streams: &Streams, stream: &StreamName) -> Result<Option<Metadata>, PartitionError> {
    let mut newest = None;
    let mut replay = streams.replay(stream, None)?;
    while let Some((_, block)) = replay.next().await? {
        let metadata = Metadata::decode(&block)
            .map_err(|error| PartitionError::Storage(format!("stream {stream}: {error}")))?;
        newest = Some(metadata);
    }
    Ok(newest)
}
