//! Moves journaled bytes to their extents: written soon, synced when the journal wants a segment back.
//!
//! What always holds: a journal segment is recycled only after every byte it holds was synced in its extent. A full
//! disk costs its reserve, then makes the drain wait and try the write again; a failed sync stops all writing, because
//! nobody knows what the disk holds.

use super::extent::Extent;
use super::stop::Stop;
use crate::error::{StreamError, is_disk_full};
use crate::ids::ExtentId;
use crate::space::Space;
use base::{Clock, give_way};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Adjacent pending chunks are joined into writes of up to this many bytes.
const WRITE_SIZE_BYTES_MAX: usize = 256 << 10;
/// Journaled bytes wait for their extents until there are this many, or a segment is wanted back: one large write is
/// cheaper than many small ones, and each wake-up of the drain costs the journal's requesters time.
const WAKE_SIZE_BYTES: u64 = 1 << 20;
/// How long a drain that met a full disk waits before it tries again.
const DISK_FULL_RETRY_AFTER: Duration = Duration::from_millis(200);

pub(crate) struct Drain {
    queues: Mutex<Queues>,
    wake: Notify,
    progress: watch::Sender<Progress>,
    stop: Arc<Stop>,
    space: Arc<Space>,
}

#[derive(Default)]
struct Queues {
    /// Extents with pending bytes.
    dirty: BTreeMap<ExtentId, Arc<Extent>>,
    /// Bytes added since the last wake-up.
    waiting_bytes: u64,
    /// Extents with written, unsynced bytes.
    unsynced: BTreeMap<ExtentId, Arc<Extent>>,
    /// The newest ticket: all bytes that were added before it was given out shall be synced.
    asked: u64,
    closing: bool,
}

/// How far the drain has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// All bytes that were added before this ticket was given out are synced in their extents.
    pub(crate) synced: u64,
    /// The last write found no space.
    pub(crate) disk_full: bool,
    /// The drain has ended.
    pub(crate) closed: bool,
}

impl Drain {
    /// A drain that owes nothing.
    pub(crate) fn new(stop: Arc<Stop>, space: Arc<Space>) -> Self {
        let progress = watch::Sender::new(Progress::default());
        Drain { queues: Mutex::default(), wake: Notify::new(), progress, stop, space }
    }

    /// The extent has `size_bytes` more pending bytes.
    pub(crate) fn add(&self, extent: &Arc<Extent>, size_bytes: u64) {
        let mut queues = self.queues.lock();
        queues.dirty.entry(extent.id).or_insert_with(|| extent.clone());
        queues.waiting_bytes += size_bytes;
        if queues.waiting_bytes >= WAKE_SIZE_BYTES {
            queues.waiting_bytes = 0;
            self.wake.notify_one();
        }
    }

    /// The extent is deleted: what waits for it is not needed.
    pub(crate) fn forget(&self, extent: ExtentId) {
        let mut queues = self.queues.lock();
        queues.dirty.remove(&extent);
        queues.unsynced.remove(&extent);
    }

    /// Asks for all bytes added so far to be synced. The ticket says when: once [`Progress::synced`] has reached it. Bytes
    /// that are added later need another.
    pub(crate) fn request(&self) -> u64 {
        let mut queues = self.queues.lock();
        queues.asked += 1;
        self.wake.notify_one();
        queues.asked
    }

    /// Sync all, then end.
    pub(crate) fn close(&self) {
        self.queues.lock().closing = true;
        self.wake.notify_one();
    }

    /// Tells of progress.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The drain's task.
    pub(crate) async fn run(self: Arc<Self>, clock: Arc<dyn Clock>) {
        loop {
            let given_up = self.space.given_up();
            match self.pass().await {
                Ok(true) => break,
                Ok(false) => self.wake.notified().await,
                Err(StreamError::DiskFull) if self.space.give_up(given_up).await => {}
                // The journal holds what could not be written: the next start writes it.
                Err(StreamError::DiskFull) if self.queues.lock().closing => break,
                Err(StreamError::DiskFull) => {
                    self.progress.send_modify(|progress| progress.disk_full = true);
                    clock.sleep(DISK_FULL_RETRY_AFTER).await;
                }
                Err(error) => {
                    self.stop.writes(error);
                    break;
                }
            }
        }
        self.progress.send_modify(|progress| progress.closed = true);
    }

    /// Writes what is pending, syncs if asked. True if the drain shall end.
    async fn pass(&self) -> Result<bool, StreamError> {
        let (dirty, asked, closing) = {
            let queues = self.queues.lock();
            (queues.dirty.values().cloned().collect::<Vec<_>>(), queues.asked, queues.closing)
        };
        for extent in &dirty {
            self.write_pending(extent).await?;
        }
        if self.progress.borrow().disk_full {
            self.progress.send_modify(|progress| progress.disk_full = false);
        }
        if closing || asked > self.progress.borrow().synced {
            let unsynced: Vec<_> = std::mem::take(&mut self.queues.lock().unsynced).into_values().collect();
            for extent in unsynced {
                let what = || format!("extent {}", extent.id);
                extent.file.sync_data().await.map_err(|error| StreamError::write(&what(), &error))?;
            }
            self.progress.send_modify(|progress| progress.synced = asked);
        }
        let queues = self.queues.lock();
        // Bytes that came meanwhile wait for the next wake-up, unless this is the end.
        let owes = queues.asked > asked || queues.closing != closing || (closing && !queues.dirty.is_empty());
        if owes {
            self.wake.notify_one();
        }
        Ok(closing && !owes)
    }

    async fn write_pending(&self, extent: &Arc<Extent>) -> Result<(), StreamError> {
        let chunks = extent.pending();
        for run in adjacent_runs(&chunks) {
            let offset = run[0].0;
            extent.file.write_at(offset, joined(run)).await.map_err(|error| {
                if is_disk_full(&error) {
                    StreamError::DiskFull
                } else {
                    StreamError::write(&format!("extent {}", extent.id), &error)
                }
            })?;
            give_way().await;
        }
        extent.written(&chunks);
        let mut queues = self.queues.lock();
        // Forgotten in the meantime: the extent was deleted.
        if queues.dirty.contains_key(&extent.id) {
            queues.unsynced.insert(extent.id, extent.clone());
            if extent.pending().is_empty() {
                queues.dirty.remove(&extent.id);
            }
        }
        Ok(())
    }
}

/// Cuts chunks, sorted by offset, into runs that touch and are small enough for one write.
fn adjacent_runs(chunks: &[(u64, Bytes)]) -> impl Iterator<Item = &[(u64, Bytes)]> {
    let mut size = 0;
    chunks.chunk_by(move |(offset, bytes), (next, following)| {
        size += bytes.len();
        let joins = offset + bytes.len() as u64 == *next && size + following.len() <= WRITE_SIZE_BYTES_MAX;
        if !joins {
            size = 0;
        }
        joins
    })
}

fn joined(run: &[(u64, Bytes)]) -> Bytes {
    if let [(_, only)] = run {
        return only.clone();
    }
    let mut all = BytesMut::with_capacity(run.iter().map(|(_, bytes)| bytes.len()).sum());
    run.iter().for_each(|(_, bytes)| all.extend_from_slice(bytes));
    all.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_what_touches() {
        let chunk = |offset: u64, len: usize| (offset, Bytes::from(vec![0; len]));
        let chunks = [
            chunk(0, 10),
            chunk(10, 5),
            chunk(20, 5),
            chunk(25, WRITE_SIZE_BYTES_MAX),
            chunk(25 + (1 << 20), 1),
        ];
        let runs: Vec<usize> = adjacent_runs(&chunks).map(<[_]>::len).collect();
        assert_eq!(runs, [2, 1, 1, 1]);
        assert_eq!(joined(&chunks[..2]).len(), 15);
    }
}
