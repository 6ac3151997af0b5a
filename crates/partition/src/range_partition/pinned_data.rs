//! Blob data of a range for those who upload and read it: pieces are appended and found, and pinned.
//!
//! A pin keeps its range, too: the streams of a range that was handed over stay while somebody reads from it.

use super::blob_data_collector::{MoveRows, ReadPieces};
use super::data::{RangeData, extents_of, pieces_of};
use super::executed::Executed;
use super::partition::RangePartition;
use super::range_tree::Standing;
use crate::blob_data::piece::{DATA_BLOCK_SIZE_BYTES, PIECE_SIZE_BYTES_MAX, Piece};
use crate::decider::Decider;
use crate::error::PartitionError;
use crate::key::{RowKey, account_prefix};
use crate::operation::{Read, Row, RowPart};
use base::BoxFuture;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use stream::ExtentId;

/// Appends of up to this many bytes go through the journal, whose thread does the waiting.
const SMALL_APPEND_SIZE_BYTES_MAX: usize = 256 << 10;
/// Times that an append or a read starts again because an extent was just collected.
const RETRY_COUNT_MAX: usize = 16;

/// Keeps pieces readable until it is dropped.
pub struct DataPin {
    range: Arc<RangePartition>,
    extents: Vec<ExtentId>,
}

impl DataPin {
    /// Bytes of a piece from `at` on: some, up to the end of the append block that holds them. Empty: `at` is
    /// the end.
    pub async fn read(&self, piece: &Piece, at: u64) -> Result<Bytes, PartitionError> {
        let Some((location, from)) = piece.block_of(at) else { return Ok(Bytes::new()) };
        if !self.extents.contains(&piece.extent) {
            return Err(PartitionError::Operation("a piece that is not pinned"));
        }
        let block = self.range.core.shared.streams.read(location).await?;
        self.range.core.check_lease()?;
        Ok(block.slice(from..))
    }
}

impl Drop for DataPin {
    fn drop(&mut self) {
        if let Some(data) = &self.range.data {
            data.unpin(&self.extents);
        }
    }
}

impl RangePartition {
    pub(super) fn range_data(&self) -> Result<&Arc<RangeData>, PartitionError> {
        self.data.as_ref().ok_or(PartitionError::Operation("the table has no blob data"))
    }

    /// Appends bytes that somebody uploads, durable when it returns; the piece stays at least until the pin
    /// is dropped, here and in ranges that take over. Moved: it is being handed over, and those may not have
    /// got the bytes.
    pub(crate) async fn append_data(
        self: &Arc<Self>,
        key: &RowKey,
        bytes: Bytes,
    ) -> Result<Executed<(Piece, DataPin)>, PartitionError> {
        // Before any of it is stored: the row that would name it will be refused.
        if self.core.shared.streams.is_scarce() {
            return Err(PartitionError::DiskFull);
        }
        self.core.check_lease()?;
        self.range_data()?.activity.fetch_add(1, Ordering::Relaxed);
        let owner = account_prefix(key.as_bytes()).map(|account| key.as_bytes().slice_ref(account));
        self.append_piece(owner.unwrap_or_default(), bytes).await
    }

    /// As [`Self::append_data`], also while space is scarce. The owner is an account, or nothing: the server
    /// itself.
    pub(super) async fn append_piece(
        self: &Arc<Self>,
        owner: Bytes,
        bytes: Bytes,
    ) -> Result<Executed<(Piece, DataPin)>, PartitionError> {
        let data = self.range_data()?;
        if bytes.is_empty() || bytes.len() > PIECE_SIZE_BYTES_MAX {
            return Err(PartitionError::Operation("a piece has 1 byte to 4 MiB"));
        }
        let _admitted = self.core.shared.data_writer.admit(&owner, bytes.len()).await?;
        let blocks: Vec<Bytes> = (0..bytes.len())
            .step_by(DATA_BLOCK_SIZE_BYTES)
            .map(|start| bytes.slice(start..bytes.len().min(start + DATA_BLOCK_SIZE_BYTES)))
            .collect();
        for _ in 0..RETRY_COUNT_MAX {
            let (stream, by) = (&data.stream, self.core.owner);
            let locations = if bytes.len() <= SMALL_APPEND_SIZE_BYTES_MAX {
                self.core.shared.streams.append(stream, by, blocks.clone()).await?
            } else {
                self.core.shared.data_writer.append_of(&owner, stream, by, blocks.clone()).await?
            };
            let piece = Piece::of_blocks(&locations)
                .ok_or_else(|| PartitionError::Storage("an append that is not in one piece".to_owned()))?;
            let stat = || self.core.shared.streams.stat(stream);
            let is_in_stream =
                || stat().is_ok_and(|stat| stat.extents.iter().any(|(extent, _)| *extent == piece.extent));
            self.core.check_lease()?;
            if data.pin_appended(piece.extent, is_in_stream) {
                let pin = DataPin { range: self.clone(), extents: vec![piece.extent] };
                // Heirs get what the stream lists after the range has paused.
                return Ok(match self.core.serial.lock().standing {
                    Standing::HandingOver | Standing::Gone => Executed::Moved(()),
                    Standing::Open | Standing::Closed(_) => Executed::Done((piece, pin)),
                });
            }
        }
        Err(PartitionError::Busy)
    }

    /// The row at `key`, its pieces pinned.
    pub(crate) async fn get_with_data(
        self: &Arc<Self>,
        key: &RowKey,
    ) -> Result<Option<(Row, DataPin)>, PartitionError> {
        let data = self.range_data()?;
        for _ in 0..RETRY_COUNT_MAX {
            let Some(row) = self.get(key, RowPart::Whole).await? else { return Ok(None) };
            let extents = extents_of(&pieces_of(&row.value)?);
            // An extent leaves after its last piece was moved: then the row says where.
            if data.pin(&extents) {
                return Ok(Some((row, DataPin { range: self.clone(), extents })));
            }
            tokio::task::yield_now().await;
        }
        Err(PartitionError::Busy)
    }
}

impl ReadPieces for DataPin {
    fn read<'a>(&'a self, piece: &'a Piece, at: u64) -> BoxFuture<'a, Result<Bytes, PartitionError>> {
        Box::pin(DataPin::read(self, piece, at))
    }
}

impl MoveRows for Arc<RangePartition> {
    type Pin = DataPin;

    fn get_with_data<'a>(
        &'a self,
        key: &'a RowKey,
    ) -> BoxFuture<'a, Result<Option<(Row, DataPin)>, PartitionError>> {
        Box::pin(RangePartition::get_with_data(self, key))
    }

    fn append_piece(
        &self,
        bytes: Bytes,
    ) -> BoxFuture<'_, Result<Executed<(Piece, DataPin)>, PartitionError>> {
        Box::pin(RangePartition::append_piece(self, Bytes::new(), bytes))
    }

    fn execute<'a>(
        &'a self,
        operation: &'a mut dyn Decider,
        reads: Vec<Read>,
    ) -> BoxFuture<'a, Result<Executed<(), Vec<Read>>, PartitionError>> {
        Box::pin(RangePartition::execute(self, operation, reads))
    }
}
