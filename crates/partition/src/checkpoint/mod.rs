//! A checkpoint: sorted rows in the row data stream, each row once, with index, filters and statistics.
//!
//! Written once (`writer`), then only read: point lookups ask the part's filter, then its index, then one row block;
//! range reads walk row blocks in order (`cursor`). All blocks come through the process-wide cache.

mod check;
mod cursor;
mod filter;
mod index_block;
mod root;
mod row_block;
mod writer;

pub(crate) use cursor::{Caching, CheckpointCursor};
pub(crate) use filter::{Filter, key_hash};
pub(crate) use index_block::IndexBlock;
pub(crate) use root::Root;
pub(crate) use row_block::RowBlock;
pub(crate) use writer::CheckpointWriter;

use crate::block_cache::{BlockCache, CachedBlock};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::operation::RowVersion;
use bytes::Bytes;
use index_block::first_at_or_after;
use root::Part;
use std::sync::Arc;
use stream::{Location, Streams};

/// A checkpoint, open for reading.
pub(crate) struct Checkpoint {
    pub(crate) root: Root,
    streams: Arc<Streams>,
    cache: Arc<BlockCache>,
}

/// A row as a checkpoint holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRow {
    pub(crate) version: RowVersion,
    /// `None`: the row was deleted.
    pub(crate) value: Option<Bytes>,
}

impl Checkpoint {
    /// Reads the root at `location`.
    pub(crate) async fn open(
        streams: Arc<Streams>,
        cache: Arc<BlockCache>,
        location: Location,
    ) -> Result<Self, PartitionError> {
        let payload = streams.read(location).await?;
        let root = Root::decode(&payload).map_err(|error| damaged(location, &error.to_string()))?;
        Ok(Checkpoint { root, streams, cache })
    }

    /// The same checkpoint for another range: who waits for readers of one does not wait for those of the other.
    pub(crate) fn reopened(&self) -> Self {
        Checkpoint { root: self.root.clone(), streams: self.streams.clone(), cache: self.cache.clone() }
    }

    /// The row with this key, if the checkpoint knows it. `hash` is the key's [`key_hash`].
    pub(crate) async fn get(&self, key: &[u8], hash: u64) -> Result<Option<StoredRow>, PartitionError> {
        if key < self.root.first_key.as_ref() {
            return Ok(None);
        }
        let at = self.root.parts.partition_point(|part| part.last_key.as_ref() < key);
        let Some(part) = self.root.parts.get(at) else { return Ok(None) };
        if !self.filter(part.filter).await?.may_contain(hash) {
            return Ok(None);
        }
        let index = self.index(part).await?;
        let Some(entry) = index.entries.get(first_at_or_after(&index.entries, key)) else { return Ok(None) };
        let rows = self.rows(entry.location).await?;
        let found = rows.find(key).map_err(|error| damaged(entry.location, &error.to_string()))?;
        Ok(found.map(|(version, value)| StoredRow { version, value }))
    }

    /// Last key and bytes of each row block that holds rows of `range`, roughly: the blocks at its ends may be counted
    /// for a neighbour.
    pub(crate) async fn blocks_in(&self, range: &KeyRange) -> Result<Vec<(Bytes, u64)>, PartitionError> {
        let mut blocks = Vec::new();
        let first = self.root.parts.partition_point(|part| part.last_key < range.start);
        for part in &self.root.parts[first..] {
            let index = self.index(part).await?;
            let inside = index.entries.iter().filter(|entry| range.contains(&entry.last_key));
            blocks.extend(inside.map(|entry| (entry.last_key.clone(), u64::from(entry.location.len))));
            if range.end.as_ref().is_some_and(|end| part.last_key >= *end) {
                break;
            }
        }
        Ok(blocks)
    }

    async fn filter(&self, location: Location) -> Result<Filter, PartitionError> {
        if let Some(CachedBlock::Filter(filter)) = self.cache.find(location) {
            return Ok(filter);
        }
        let payload = self.streams.read(location).await?;
        let filter = Filter::parse(payload).map_err(|error| damaged(location, &error.to_string()))?;
        self.cache.insert(location, CachedBlock::Filter(filter.clone()));
        Ok(filter)
    }

    async fn index(&self, part: &Part) -> Result<Arc<IndexBlock>, PartitionError> {
        if let Some(CachedBlock::Index(index)) = self.cache.find(part.index) {
            return Ok(index);
        }
        let payload = self.streams.read(part.index).await?;
        let index = IndexBlock::parse(&payload).map_err(|error| damaged(part.index, &error.to_string()))?;
        let index = Arc::new(index);
        self.cache.insert(part.index, CachedBlock::Index(index.clone()));
        Ok(index)
    }

    async fn rows(&self, location: Location) -> Result<RowBlock, PartitionError> {
        if let Some(CachedBlock::Rows(rows)) = self.cache.find(location) {
            return Ok(rows);
        }
        self.cache.note_row_block_read();
        let rows = self.read_rows(location).await?;
        self.cache.insert(location, CachedBlock::Rows(rows.clone()));
        Ok(rows)
    }

    /// Reads a row block past the cache.
    async fn read_rows(&self, location: Location) -> Result<RowBlock, PartitionError> {
        parse_rows(self.streams.read(location).await?, location)
    }

    /// Reads row blocks that follow one another, as stored, for walks that would only push out of memory what others
    /// need.
    async fn read_run(&self, run: &[Location]) -> Result<Vec<Bytes>, PartitionError> {
        Ok(self.streams.read_run(run).await?)
    }
}

fn parse_rows(payload: Bytes, location: Location) -> Result<RowBlock, PartitionError> {
    RowBlock::parse(payload).map_err(|error| damaged(location, &error.to_string()))
}

fn damaged(location: Location, why: &str) -> PartitionError {
    PartitionError::Storage(format!(
        "checkpoint block at extent {}, byte {}: {why}",
        location.extent, location.offset
    ))
}
