//! Appending to an append blob.

use crate::blob::put_blob::Written;
use crate::condition::Conditions;
use crate::content::{Block, Chunk, Content, encode_block_row};
use crate::encryption::Encryption;
use crate::error::BlobError;
use crate::limits::{COMMITTED_BLOCKS_MAX, TAIL_BLOCKS_MAX};
use crate::rows::chunk_row::chunk_row;
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::record::{BlobRecord, BlobType};
use base::Ticks;
use bytes::Bytes;
use partition::Piece;

/// Appends bytes.
pub(crate) struct AppendBlock {
    pub(crate) size: u64,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) conditions: Conditions,
    pub(crate) position: Option<u64>,
    pub(crate) size_max: Option<u64>,
}

/// What an append tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The new ETag.
    pub etag: u64,
    /// When.
    pub modified_at: Ticks,
    /// Where the bytes begin.
    pub offset: u64,
    /// Appends so far.
    pub blocks: u64,
    /// What the blob is encrypted with.
    pub encryption: Encryption,
}

impl BlobChange for AppendBlock {
    type Reply = Appended;

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Appended, Stop> {
        let live = rows.live()?;
        self.conditions.check_write(Some(live.present()))?;
        if live.blob_type != BlobType::Append {
            return Err(BlobError::InvalidBlobType.into());
        }
        self.conditions.encryption.check_write(&live.encryption)?;
        rows.head.lease = rows.head.lease.check_write(self.conditions.lease(), now)?;
        let mut record: BlobRecord = rows.live()?.clone();
        if record.by_type.sealed {
            return Err(BlobError::BlobIsSealed.into());
        }
        if self.position.is_some_and(|position| position != record.size) {
            return Err(BlobError::AppendPositionConditionNotMet.into());
        }
        if self.size_max.is_some_and(|size_max| record.size + self.size > size_max) {
            return Err(BlobError::MaxBlobSizeConditionNotMet.into());
        }
        if record.by_type.appended_blocks >= COMMITTED_BLOCKS_MAX as u64 {
            return Err(BlobError::BlockCountExceedsLimit.into());
        }
        let offset = record.size;
        if let Content::Blocks(content) = &mut record.content {
            content.tail.push(Block { id: Bytes::new(), size: self.size, pieces: self.pieces.clone() });
            if content.tail.len() >= TAIL_BLOCKS_MAX {
                if content.chunks.is_empty() {
                    content.generation = now.0;
                }
                let tail = std::mem::take(&mut content.tail);
                rows.put(chunk_row(content.generation, content.chunks.len()), encode_block_row(&tail));
                let size = tail.iter().map(|block| block.size).sum();
                content.chunks.push(Chunk { blocks: tail.len() as u32, size });
            }
        }
        record.size += self.size;
        record.by_type.appended_blocks += 1;
        record.touch(now);
        let (blocks, encryption) = (record.by_type.appended_blocks, record.encryption.clone());
        rows.head.current = Some(record);
        Ok(Appended { etag: now.0, modified_at: now, offset, blocks, encryption })
    }
}

/// Seals an append blob: no more appends.
pub(crate) struct SealBlob {
    pub(crate) conditions: Conditions,
    pub(crate) position: Option<u64>,
}

impl BlobChange for SealBlob {
    type Reply = Written;

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Self::Reply, Stop> {
        let live = rows.live()?;
        self.conditions.check_write(Some(live.present()))?;
        if live.blob_type != BlobType::Append {
            return Err(BlobError::InvalidBlobType.into());
        }
        if self.position.is_some_and(|position| position != live.size) {
            return Err(BlobError::AppendPositionConditionNotMet.into());
        }
        rows.head.lease = rows.head.lease.check_write(self.conditions.lease(), now)?;
        // The reference: sealing changes neither ETag nor date.
        let live = rows.live_mut()?;
        live.by_type.sealed = true;
        Ok(Written::of(live))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::put_blob::{NewBlob, NewContent, PutBlob};
    use crate::rows::decision::memory_blob::MemoryBlob;

    fn append(position: Option<u64>, size_max: Option<u64>) -> AppendBlock {
        let pieces = vec![Piece::for_tests(1, 0, 10)];
        AppendBlock { size: 10, pieces, conditions: Conditions::default(), position, size_max }
    }

    fn create() -> PutBlob {
        PutBlob {
            blob_type: BlobType::Append,
            size: 0,
            content: NewContent::Pieces(Vec::new()),
            new: NewBlob::default(),
            replacement: Default::default(),
        }
    }

    #[test]
    fn appends_obey_both_conditions() {
        let mut blob = MemoryBlob::default();
        assert_eq!(blob.run(append(None, None), 1), Err(BlobError::BlobNotFound));
        blob.run(create(), 2).unwrap();
        let first = blob.run(append(Some(0), Some(10)), 3).unwrap();
        assert_eq!((first.offset, first.blocks, first.etag), (0, 1, 3));
        assert_eq!(blob.run(append(Some(0), None), 4), Err(BlobError::AppendPositionConditionNotMet));
        assert_eq!(blob.run(append(None, Some(19)), 5), Err(BlobError::MaxBlobSizeConditionNotMet));
        assert_eq!(blob.run(append(Some(10), Some(20)), 6).unwrap().offset, 10);
        blob.run(SealBlob { conditions: Conditions::default(), position: None }, 7).unwrap();
        assert_eq!(blob.run(append(None, None), 8), Err(BlobError::BlobIsSealed));
    }

    #[test]
    fn fifty_thousand_appends_and_no_more() {
        let mut blob = MemoryBlob::default();
        blob.run(create(), 1).unwrap();
        for index in 0..COMMITTED_BLOCKS_MAX as u64 {
            assert_eq!(blob.run(append(None, None), 2 + index).unwrap().offset, index * 10);
        }
        assert_eq!(blob.run(append(None, None), 60_000), Err(BlobError::BlockCountExceedsLimit));
        let head = blob.head().current.unwrap();
        let Content::Blocks(content) = head.content else { panic!("not blocks") };
        assert_eq!(content.chunks.len(), blob.count("3c"));
        assert_eq!(
            content.chunks.iter().map(|chunk| chunk.size).sum::<u64>() + 10 * content.tail.len() as u64,
            500_000
        );
    }
}
