//! The disk with a stopwatch: what each kind of file costs, to tell what limits the engine.

use async_trait::async_trait;
use base::disk::{Disk, DiskFile, OpenMode};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What was asked of the files of one folder.
#[derive(Default)]
struct Counters {
    written_bytes: AtomicU64,
    sync_count: AtomicU64,
    /// Time in writes and syncs, added up over threads.
    busy_us: AtomicU64,
}

/// What was asked of the files of one folder so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) written_bytes: u64,
    pub(crate) sync_count: u64,
    pub(crate) busy_for: Duration,
}

impl Cost {
    /// What has come since `before`.
    pub(crate) fn since(self, before: Cost) -> Cost {
        Cost {
            written_bytes: self.written_bytes - before.written_bytes,
            sync_count: self.sync_count - before.sync_count,
            busy_for: self.busy_for.saturating_sub(before.busy_for),
        }
    }
}

impl Counters {
    fn cost(&self) -> Cost {
        Cost {
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            sync_count: self.sync_count.load(Ordering::Relaxed),
            busy_for: Duration::from_micros(self.busy_us.load(Ordering::Relaxed)),
        }
    }

    fn took(&self, since: Instant) {
        self.busy_us.fetch_add(since.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
}

/// A disk that passes everything on.
pub(crate) struct MeasuredDisk {
    disk: Arc<dyn Disk>,
    journal: Arc<Counters>,
    others: Arc<Counters>,
}

impl MeasuredDisk {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        MeasuredDisk { disk, journal: Arc::default(), others: Arc::default() }
    }

    /// The journal: one thread, all that is acknowledged goes through it.
    pub(crate) fn journal(&self) -> Cost {
        self.journal.cost()
    }

    /// Everything else.
    pub(crate) fn others(&self) -> Cost {
        self.others.cost()
    }
}

#[async_trait]
impl Disk for MeasuredDisk {
    async fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(path, mode).await?;
        let counters = if path.starts_with("journal/") { &self.journal } else { &self.others };
        Ok(Arc::new(MeasuredFile { file, counters: counters.clone() }))
    }
    async fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.disk.list(folder).await
    }
    async fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.create_folder(folder).await
    }
    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to).await
    }
    async fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path).await
    }
    async fn sync_folder(&self, folder: &str) -> io::Result<()> {
        let begun = Instant::now();
        let outcome = self.disk.sync_folder(folder).await;
        self.others.took(begun);
        outcome
    }
    async fn exists(&self, path: &str) -> io::Result<bool> {
        self.disk.exists(path).await
    }
    async fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes().await
    }
}

struct MeasuredFile {
    file: Arc<dyn DiskFile>,
    counters: Arc<Counters>,
}

#[async_trait]
impl DiskFile for MeasuredFile {
    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        self.file.read_at(offset, len).await
    }
    async fn read_once_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        self.file.read_once_at(offset, len).await
    }
    async fn write_at(&self, offset: u64, bytes: Bytes) -> io::Result<()> {
        let begun = Instant::now();
        self.counters.written_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let outcome = self.file.write_at(offset, bytes).await;
        self.counters.took(begun);
        outcome
    }
    async fn sync_data(&self) -> io::Result<()> {
        let begun = Instant::now();
        let outcome = self.file.sync_data().await;
        self.counters.sync_count.fetch_add(1, Ordering::Relaxed);
        self.counters.took(begun);
        outcome
    }
    async fn size(&self) -> io::Result<u64> {
        self.file.size().await
    }
    async fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len).await
    }
}
