//! Reading what a load of all ranges reads, for a process that may have to load them soon and keeps what it
//! reads of a store far away. Nothing is changed, and nothing that was read is looked at here.
//!
//! What always holds: as much as a load reads and no more: the metadata of every range, and its log from
//! where its checkpoints end.

use super::load::{RangeStreams, read_metadata};
use crate::error::PartitionError;
use crate::operation::{OBJECT_TABLES, ObjectTable};
use crate::partition_server::range_ids;
use ::stream::Streams;
use futures_util::{FutureExt, StreamExt, stream};

/// Ranges that are read side by side.
const READ_AT_ONCE_MAX: usize = 8;

/// Reads what a load of these streams' ranges would, until `is_enough` says so. A range that does not read is
/// passed over: its load says what is wrong with it.
pub async fn read_ahead(streams: &Streams, is_enough: impl Fn() -> bool + Sync) {
    let tables = OBJECT_TABLES.into_iter().chain([ObjectTable::PartitionMap]);
    let names: Vec<RangeStreams> = tables
        .flat_map(|table| range_ids(streams, table).into_iter().map(move |id| RangeStreams::new(table, id)))
        .collect();
    let reads: Vec<_> = names.iter().map(|names| read_range(streams, names, &is_enough).boxed()).collect();
    let mut reads = stream::iter(reads).buffer_unordered(READ_AT_ONCE_MAX);
    while let Some(read) = reads.next().await {
        if let Err(error) = read {
            tracing::debug!(%error, "a range was not read ahead");
        }
    }
}

/// Whether a load reads the records of a stream of this name, all of them or those behind the checkpoints:
/// of checkpoints and blob data it reads blocks.
pub fn is_loaded(stream: &str) -> bool {
    stream.ends_with("/metadata") || stream.ends_with("/log")
}

async fn read_range(
    streams: &Streams,
    names: &RangeStreams,
    is_enough: &(impl Fn() -> bool + Sync),
) -> Result<(), PartitionError> {
    let Some(metadata) = read_metadata(streams, names.metadata()).await? else { return Ok(()) };
    let mut log = streams.replay(names.log(), metadata.log_start)?;
    while !is_enough() && log.next().await?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_and_metadata_are_loaded() {
        let names = RangeStreams::new(ObjectTable::Blob, 7);
        assert!(is_loaded(names.metadata().as_str()) && is_loaded(names.log().as_str()));
        let data = names.data().expect("blobs have data");
        assert!(!is_loaded(data.as_str()) && !is_loaded(names.checkpoint(3).as_str()));
    }
}
