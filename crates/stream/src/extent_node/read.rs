//! Reading blocks of an extent: one by its location, or all in order.

use super::extent::Extent;
use super::node::{ExtentNode, REPLAY_READ_SIZE_BYTES};
use crate::block::{self, BLOCK_HEADER_SIZE};
use crate::error::StreamError;
use crate::ids::{ExtentId, Location};
use crate::sealed::{ExtentDigest, Seal, exchanged};
use bytes::Bytes;
use std::sync::Arc;

impl ExtentNode {
    /// The payload of the block at `location`, its checksum verified.
    pub(crate) async fn read(&self, location: Location) -> Result<Bytes, StreamError> {
        self.extent(location.extent)?.read(location).await
    }

    /// The payloads of blocks of one extent that follow one another, their checksums verified.
    pub(crate) async fn read_run(&self, run: &[Location]) -> Result<Vec<Bytes>, StreamError> {
        match run.first() {
            Some(first) if run.iter().all(|location| location.extent == first.extent) => {
                self.extent(first.extent)?.read_run(run).await
            }
            Some(first) => {
                Err(StreamError::Corrupt(format!("a run of blocks leaves extent {}", first.extent)))
            }
            None => Ok(Vec::new()),
        }
    }

    /// A reader over the extent's blocks from `offset` (a block's start) to its present length.
    pub(crate) fn reader(&self, extent: ExtentId, offset: u64) -> Result<ExtentReader, StreamError> {
        let extent = self.extent(extent)?;
        let state = extent.state();
        let Seal { length: end, digest } = state.sealed();
        if offset > end {
            return Err(StreamError::Corrupt(format!(
                "extent {}: a replay from {offset} starts beyond its length {end}",
                extent.id
            )));
        }
        let digest = digest
            .filter(|_| offset == 0)
            .map(|recorded| DigestCheck { read: ExtentDigest::EMPTY, recorded });
        let end_in_doubt = state.in_doubt;
        Ok(ExtentReader { extent, offset, end, end_in_doubt, buffer: Bytes::new(), digest, mended_count: 0 })
    }
}

/// The error at the end of an extent that is in doubt.
fn in_doubt(extent: ExtentId, end: u64) -> StreamError {
    StreamError::Corrupt(format!(
        "extent {extent}: the journal was damaged, and blocks that were appended at {end} and behind may be lost"
    ))
}

/// The digest of what was read, and the one that all of it must have.
struct DigestCheck {
    read: ExtentDigest,
    recorded: ExtentDigest,
}

/// Reads an extent's blocks in order. Any block that does not verify is an error, never a skip; and so is it
/// if all of them, from the first to the last, are not the ones that were appended.
pub(crate) struct ExtentReader {
    extent: Arc<Extent>,
    offset: u64,
    end: u64,
    /// Acknowledged blocks may be missing there.
    end_in_doubt: bool,
    /// Bytes that were read ahead, from `offset`.
    buffer: Bytes,
    /// `None`: not read from the first block on, or begun before digests were kept.
    digest: Option<DigestCheck>,
    /// Blocks of which a flipped bit was undone.
    mended_count: u64,
}

impl ExtentReader {
    /// Blocks so far of which a flipped bit was undone.
    pub(crate) fn mended_count(&self) -> u64 {
        self.mended_count
    }

    /// The payload of the next block, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(Location, Bytes)>, StreamError> {
        let next = self.next_whole().await?;
        Ok(next.map(|(location, block)| (location, block.slice(BLOCK_HEADER_SIZE..))))
    }

    /// The next block with its header, or `None` at the end.
    pub(crate) async fn next_whole(&mut self) -> Result<Option<(Location, Bytes)>, StreamError> {
        if self.offset == self.end {
            return match &self.digest {
                Some(DigestCheck { read, recorded }) if read != recorded => {
                    let problem = exchanged(*recorded, *read);
                    Err(StreamError::Corrupt(format!("extent {}: {problem}", self.extent.id)))
                }
                _ if self.end_in_doubt => Err(in_doubt(self.extent.id, self.end)),
                _ => Ok(None),
            };
        }
        let block = match self.whole_block().await {
            Ok(block) => block,
            Err(error @ StreamError::Corrupt(_)) => self.mended_block().await.ok_or(error)?,
            Err(error) => return Err(error),
        };
        let (size, checksum) = block::step(&block, self.extent.id, self.offset)?;
        let len = (size - BLOCK_HEADER_SIZE) as u32;
        let location = Location { extent: self.extent.id, offset: self.offset, len };
        self.offset += size as u64;
        if let Some(digest) = &mut self.digest {
            digest.read = digest.read.then(checksum);
        }
        Ok(Some((location, block)))
    }

    /// The block at the offset, header and payload, verified.
    async fn whole_block(&mut self) -> Result<Bytes, StreamError> {
        self.fill(BLOCK_HEADER_SIZE).await?;
        let (extent, offset) = (self.extent.id, self.offset);
        let len = block::payload_len(&self.buffer, extent, offset)?;
        let size = BLOCK_HEADER_SIZE + len as usize;
        self.fill(size).await?;
        block::verify(&self.buffer.slice(..size), Location { extent, offset, len })?;
        Ok(self.buffer.split_to(size))
    }

    /// The block at the offset, if it is whole but for one bit.
    async fn mended_block(&mut self) -> Option<Bytes> {
        let (extent, offset) = (self.extent.id, self.offset);
        for len in block::possible_lengths(&self.buffer, extent, offset) {
            let size = BLOCK_HEADER_SIZE + len as usize;
            if offset + size as u64 > self.end || self.fill(size).await.is_err() {
                continue;
            }
            let found = self.buffer.slice(..size);
            if let Some(block) = block::mended(&found, Location { extent, offset, len }) {
                self.extent.tell_mended(offset);
                self.mended_count += 1;
                self.buffer = self.buffer.split_off(size);
                return Some(block);
            }
        }
        None
    }

    async fn fill(&mut self, size: usize) -> Result<(), StreamError> {
        if self.buffer.len() < size {
            let left = self.end - self.offset;
            if (size as u64) > left {
                return Err(StreamError::Corrupt(format!(
                    "extent {}: the block at {} reaches beyond the length {}",
                    self.extent.id, self.offset, self.end
                )));
            }
            // What is only journaled yet is not in the file: a read must not cross into it.
            let readable = self.extent.contiguous_from(self.offset);
            let want = left.min(readable).min(size.max(REPLAY_READ_SIZE_BYTES) as u64).max(size as u64);
            self.buffer = self.extent.read_raw(self.offset, want as usize).await?;
        }
        Ok(())
    }
}
