//! One open extent of a node: its file, its durable facts, and the bytes that are journaled but not yet in
//! the file.
//!
//! What always holds: bytes below the published length are readable, from `pending` or from the file; bytes
//! at or beyond it are not.

use super::large_run::LargeRun;
use super::state::ExtentState;
use crate::block::{self, BLOCK_HEADER_SIZE};
use crate::error::StreamError;
use crate::ids::{ExtentId, Location};
use base::DiskFile;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub(crate) struct Extent {
    pub(crate) id: ExtentId,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Shared by appends through the journal until they are durable; exclusive for a run of appends straight
    /// to the file, which need their offsets before the journal assigns any. The journal's requests hold it,
    /// because their requesters may be dropped.
    pub(crate) tail: Arc<tokio::sync::RwLock<()>>,
    /// The newest run, if one is under way; locked by the append that begins the next.
    pub(super) large_run: tokio::sync::Mutex<Weak<LargeRun>>,
    /// Held during a sync: the kernel reports a failed write-back to one of those that sync a file at the
    /// same time, and the others must not take it for durable.
    pub(super) syncing: tokio::sync::Mutex<()>,
    /// Up to where large appends have written. An unfinished one, perhaps because its requester was dropped,
    /// has left bytes beyond the length.
    written_to: AtomicU64,
    published: Mutex<PublishedState>,
}

struct PublishedState {
    state: ExtentState,
    /// Journaled bytes by offset, until they are written to the file.
    pending: BTreeMap<u64, Bytes>,
}

impl Extent {
    pub(crate) fn new(id: ExtentId, file: Arc<dyn DiskFile>, state: ExtentState) -> Self {
        let published = Mutex::new(PublishedState { state, pending: BTreeMap::new() });
        let (tail, large_run, syncing) = Default::default();
        Extent { id, file, tail, large_run, syncing, written_to: AtomicU64::new(0), published }
    }

    /// Whether bytes beyond the length have to be cut off before the next append. To be called with the tail
    /// held.
    pub(super) fn is_written_beyond(&self) -> bool {
        let written_to = self.written_to.load(Ordering::Relaxed);
        written_to > 0 && written_to > self.state().length
    }

    /// Notes that the file is about to be written up to there.
    pub(super) fn note_written_to(&self, end: u64) {
        self.written_to.fetch_max(end, Ordering::Relaxed);
    }

    /// Notes that the file was cut to its length.
    pub(super) fn note_cut(&self) {
        self.written_to.store(0, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> ExtentState {
        self.published.lock().state
    }

    /// Makes durable facts visible; `bytes` were journaled at `offset` and are not yet in the file.
    pub(crate) fn publish(&self, state: ExtentState, journaled: Option<(u64, Bytes)>) {
        let mut published = self.published.lock();
        published.state = state;
        published.pending.extend(journaled);
    }

    /// The journaled bytes below `end` that wait for the file.
    pub(crate) fn pending_below(&self, end: u64) -> Vec<(u64, Bytes)> {
        self.published.lock().pending.range(..end).map(|(offset, bytes)| (*offset, bytes.clone())).collect()
    }

    /// Forgets pending bytes that are in the file now.
    pub(crate) fn written(&self, chunks: &[(u64, Bytes)]) {
        let mut published = self.published.lock();
        for (offset, _) in chunks {
            published.pending.remove(offset);
        }
    }

    /// Bytes from `offset` on that lie in one place: in one pending chunk, or in the file up to the next
    /// chunk.
    pub(crate) fn contiguous_from(&self, offset: u64) -> u64 {
        let published = self.published.lock();
        if let Some((start, chunk)) = published.pending.range(..=offset).next_back()
            && offset < start + chunk.len() as u64
        {
            return start + chunk.len() as u64 - offset;
        }
        let next = published.pending.range(offset..).next().map(|(start, _)| *start);
        next.unwrap_or(published.state.length).saturating_sub(offset)
    }

    /// The payload of the block at `location`, verified.
    pub(crate) async fn read(&self, location: Location) -> Result<Bytes, StreamError> {
        let block = self.read_raw(location.offset, BLOCK_HEADER_SIZE + location.len as usize).await?;
        self.verified(&block, location)
    }

    /// The payload of what was read at `location`, if it is the block that was appended there, or is it but
    /// for one bit.
    fn verified(&self, block: &Bytes, location: Location) -> Result<Bytes, StreamError> {
        block::verify(block, location).or_else(|error| {
            let mended = block::mended(block, location).ok_or(error)?;
            self.tell_mended(location.offset);
            Ok(mended.slice(BLOCK_HEADER_SIZE..))
        })
    }

    /// A bit of the block at `offset` was flipped, and that is undone for the reader.
    pub(crate) fn tell_mended(&self, offset: u64) {
        tracing::warn!(
            extent = %self.id,
            offset,
            "a bit of a stored block was flipped: it is read as it was written; larimar repair writes it anew"
        );
    }

    /// The payloads of blocks that follow one another, verified. They are read in one piece if they lie in
    /// one place, and the disk need not keep them in memory.
    pub(crate) async fn read_run(&self, run: &[Location]) -> Result<Vec<Bytes>, StreamError> {
        let Some((first, last)) = run.first().zip(run.last()) else { return Ok(Vec::new()) };
        let size = last.end().saturating_sub(first.offset);
        let follow = run.windows(2).all(|pair| pair[0].end() == pair[1].offset);
        let mut payloads = Vec::with_capacity(run.len());
        if !follow || size > self.contiguous_from(first.offset) || self.is_pending(first.offset) {
            for location in run {
                payloads.push(self.read(*location).await?);
            }
            return Ok(payloads);
        }
        let what = |error: std::io::Error| StreamError::read(&format!("extent {}", self.id), &error);
        let mut bytes = self.file.read_once_at(first.offset, size as usize).await.map_err(what)?;
        for location in run {
            let block = bytes.split_to(BLOCK_HEADER_SIZE + location.len as usize);
            payloads.push(self.verified(&block, *location)?);
        }
        Ok(payloads)
    }

    /// Whether the byte at `offset` is not in the file yet.
    fn is_pending(&self, offset: u64) -> bool {
        let published = self.published.lock();
        let before = published.pending.range(..=offset).next_back();
        before.is_some_and(|(start, chunk)| offset < start + chunk.len() as u64)
    }

    /// `len` bytes from `offset`, which must lie below the length. Unverified.
    pub(crate) async fn read_raw(&self, offset: u64, len: usize) -> Result<Bytes, StreamError> {
        let end = offset.checked_add(len as u64);
        let pending = {
            let published = self.published.lock();
            let length = published.state.length;
            if end.is_none_or(|end| end > length) {
                return Err(StreamError::Corrupt(format!(
                    "extent {}: a reference to {len} bytes at {offset} reaches beyond its length {length}",
                    self.id
                )));
            }
            published.pending.range(..=offset).next_back().and_then(|(start, chunk)| {
                let from = (offset - start) as usize;
                let bytes = chunk.get(from..)?.get(..len)?;
                Some(chunk.slice_ref(bytes))
            })
        };
        if let Some(bytes) = pending {
            // A copy: a caller that keeps it must not keep the whole record of the journal.
            return Ok(Bytes::copy_from_slice(&bytes));
        }
        let what = || format!("extent {}", self.id);
        self.file.read_at(offset, len).await.map_err(|error| StreamError::read(&what(), &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::Owner;
    use base::memory_disk::MemoryDisk;
    use base::{Disk, OpenMode};
    use futures_util::FutureExt;

    /// A cached block of some hundred bytes kept the record of 4 MiB that it had been journaled in.
    #[test]
    fn what_was_read_does_not_keep_the_record_of_the_journal() {
        let disk = MemoryDisk::new();
        let file = disk.open("extent", OpenMode::CreateNew).now_or_never().unwrap().unwrap();
        let state = ExtentState { length: 100, ..ExtentState::empty(Owner::default()) };
        let extent = Extent::new(ExtentId(1), file, state);
        let record = Bytes::from(vec![7; 1 << 20]);
        extent.publish(state, Some((0, record.slice(500..600))));
        let read = extent.read_raw(10, 80).now_or_never().unwrap().unwrap();
        assert_eq!(read, vec![7; 80]);
        extent.written(&extent.pending_below(100));
        assert!(record.is_unique());
    }
}
