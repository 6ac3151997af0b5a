//! Where the blocks of a checkpoint are appended: its stream, at once or beside the walk over the rows.
//!
//! What always holds: appends of one checkpoint reach its stream in the order in which they were begun.

use crate::blob_data::data_writer::{DataWriter, UnderWay};
use crate::error::PartitionError;
use bytes::Bytes;
use std::sync::Arc;
use stream::{Location, Owner, StreamName, Streams};

/// The stream of a checkpoint that is being written.
pub(super) struct Destination {
    pub(super) streams: Arc<Streams>,
    pub(super) stream: StreamName,
    pub(super) owner: Owner,
    /// Appends blocks while others are made; without it the walk waits for each append.
    pub(super) beside: Option<Arc<DataWriter>>,
    /// An extent that has so many bytes is ended.
    pub(super) extent_size_bytes: u64,
}

impl Destination {
    /// Whether the walk goes on during an append.
    pub(super) fn is_beside(&self) -> bool {
        self.beside.is_some()
    }

    /// Appends blocks and waits until they are there.
    pub(super) async fn append(&self, blocks: Vec<Bytes>) -> Result<Vec<Location>, PartitionError> {
        let locations = self.streams.append(&self.stream, self.owner, blocks).await?;
        if let Some(last) = locations.last()
            && last.offset + u64::from(last.len) >= self.extent_size_bytes
            && let Err(error) = self.streams.seal(&self.stream, self.owner, last.extent).await
        {
            // It costs only space later: the extent goes on.
            tracing::debug!(stream = %self.stream, %error, "an extent of a checkpoint goes on");
        }
        Ok(locations)
    }

    /// Begins to append blocks; where nothing appends beside the walk, they are there when it returns.
    pub(super) async fn begin_append(&self, blocks: Vec<Bytes>) -> Result<UnderWay, PartitionError> {
        match &self.beside {
            None => Ok(UnderWay::ended(self.append(blocks).await?)),
            Some(beside) => beside.begin_append(&self.stream, self.owner, blocks).await,
        }
    }
}
