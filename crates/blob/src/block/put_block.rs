//! Staging a block: bytes that a later block list may make part of the blob.

use crate::content::{Block, encode_staged_row};
use crate::encryption::Encryption;
use crate::error::BlobError;
use crate::limits::{BLOCK_ID_SIZE_BYTES_MAX, STAGED_BLOCKS_MAX};
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::record::BlobType;
use crate::rows::staged_row::staged_row;
use base::Ticks;
use bytes::Bytes;
use partition::Piece;

/// Stages a block.
pub(crate) struct PutBlock {
    pub(crate) id: Bytes,
    pub(crate) size: u64,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) lease: Option<String>,
    pub(crate) encryption: Encryption,
    /// The credentials allow to create, not to overwrite.
    pub(crate) create_only: bool,
}

impl BlobChange for PutBlock {
    type Reply = ();

    fn more_rows(&self) -> Vec<String> {
        vec![staged_row(&self.id)]
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<(), Stop> {
        if self.id.is_empty() || self.id.len() > BLOCK_ID_SIZE_BYTES_MAX {
            return Err(BlobError::InvalidBlockId.into());
        }
        rows.head.lease.check_write(self.lease.as_deref(), now)?;
        if rows.head.live().is_some_and(|live| live.blob_type != BlobType::Block) {
            return Err(BlobError::InvalidBlobType.into());
        }
        if self.create_only && rows.head.live().is_some() {
            return Err(BlobError::UnauthorizedBlobOverwrite.into());
        }
        // Only those that are staged together: the blob's own may come from another client.
        if rows.head.staged > 0 && usize::from(rows.head.staged_id_len) != self.id.len() {
            return Err(BlobError::InvalidBlobOrBlock.into());
        }
        let name = staged_row(&self.id);
        if rows.row(&name)?.is_none() {
            if rows.head.staged >= STAGED_BLOCKS_MAX {
                return Err(BlobError::BlockCountExceedsLimit.into());
            }
            rows.head.staged += 1;
        }
        rows.head.staged_id_len = self.id.len() as u8;
        let block = Block { id: self.id.clone(), size: self.size, pieces: self.pieces.clone() };
        rows.head.staged_at = now;
        rows.put(name, encode_staged_row(block, &self.encryption));
        Ok(())
    }
}
