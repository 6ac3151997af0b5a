//! A disk over another that keeps all changes to itself, in memory: code that recovers and repairs can be run
//! on a data folder that must not change.
//!
//! What always holds: the disk below is only opened for reading. Changes are held in pages, so a large file
//! that is changed in few places costs little.

use crate::disk::memory_disk::name_in;
use crate::disk::{Disk, DiskFile, OpenMode};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

const PAGE_SIZE: u64 = 4096;

/// The disk. What was changed is forgotten with it.
pub struct OverlayDisk {
    below: Arc<dyn Disk>,
    changes: Mutex<Changes>,
}

#[derive(Default)]
struct Changes {
    /// Files that were opened, made or moved here; `None` was removed.
    files: BTreeMap<String, Option<Arc<OverlayFile>>>,
    folders: BTreeSet<String>,
}

fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path}: no such file or folder"))
}

impl OverlayDisk {
    /// Over `below`, which stays as it is.
    pub fn new(below: Arc<dyn Disk>) -> Self {
        OverlayDisk { below, changes: Mutex::default() }
    }

    /// The file at `path`, as it is seen here.
    async fn file(&self, path: &str) -> io::Result<Arc<OverlayFile>> {
        if let Some(known) = self.changes.lock().files.get(path) {
            return known.clone().ok_or_else(|| not_found(path));
        }
        let below = self.below.open(path, OpenMode::Read).await?;
        let size = below.size().await?;
        let content = Mutex::new(Content { size, size_below: size, pages: BTreeMap::new() });
        let file = Arc::new(OverlayFile { below: Some(below), content });
        let mut changes = self.changes.lock();
        let known = changes.files.entry(path.to_owned()).or_insert_with(|| Some(file));
        known.clone().ok_or_else(|| not_found(path))
    }
}

#[async_trait]
impl Disk for OverlayDisk {
    async fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        if mode != OpenMode::CreateNew {
            return Ok(self.file(path).await?);
        }
        if self.exists(path).await? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{path}: exists")));
        }
        let file = Arc::new(OverlayFile { below: None, content: Mutex::default() });
        self.changes.lock().files.insert(path.to_owned(), Some(file.clone()));
        Ok(file)
    }
    async fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let made = self.changes.lock().folders.contains(folder);
        let below = match self.below.list(folder).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound && made => Vec::new(),
            other => other?,
        };
        let changes = self.changes.lock();
        let mut names: BTreeSet<String> = below.into_iter().collect();
        names.extend(changes.folders.iter().filter_map(|path| name_in(folder, path)).map(str::to_owned));
        for (path, file) in &changes.files {
            if let Some(name) = name_in(folder, path) {
                match file {
                    Some(_) => names.insert(name.to_owned()),
                    None => names.remove(name),
                };
            }
        }
        Ok(names.into_iter().collect())
    }
    async fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.changes.lock().folders.insert(folder.to_owned());
        Ok(())
    }
    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let file = self.file(from).await?;
        let mut changes = self.changes.lock();
        changes.files.insert(from.to_owned(), None);
        changes.files.insert(to.to_owned(), Some(file));
        Ok(())
    }
    async fn remove(&self, path: &str) -> io::Result<()> {
        self.file(path).await?;
        self.changes.lock().files.insert(path.to_owned(), None);
        Ok(())
    }
    async fn sync_folder(&self, _folder: &str) -> io::Result<()> {
        Ok(())
    }
    async fn exists(&self, path: &str) -> io::Result<bool> {
        {
            let changes = self.changes.lock();
            if let Some(known) = changes.files.get(path) {
                return Ok(known.is_some());
            }
            if changes.folders.contains(path) {
                return Ok(true);
            }
        }
        self.below.exists(path).await
    }
    async fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

struct OverlayFile {
    /// `None`: it was made here.
    below: Option<Arc<dyn DiskFile>>,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    size: u64,
    /// Bytes of the file below that count: cutting the file cuts them, too.
    size_below: u64,
    /// Changed pages, whole, by number.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl OverlayFile {
    /// Bytes of the file below, zeros behind its end.
    async fn read_below(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let size_below = self.content.lock().size_below;
        let there = size_below.saturating_sub(offset).min(len as u64) as usize;
        let mut bytes = match &self.below {
            Some(below) if there > 0 => below.read_at(offset, there).await?.to_vec(),
            _ => Vec::new(),
        };
        bytes.resize(len, 0);
        Ok(bytes)
    }
}

/// Numbers of the pages of a span.
fn pages_of(offset: u64, len: u64) -> std::ops::Range<u64> {
    offset / PAGE_SIZE..(offset + len).div_ceil(PAGE_SIZE)
}

#[async_trait]
impl DiskFile for OverlayFile {
    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let end = offset.checked_add(len as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        if end > self.content.lock().size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = self.read_below(offset, len).await?;
        let content = self.content.lock();
        for (number, page) in content.pages.range(pages_of(offset, len as u64)) {
            let start = number * PAGE_SIZE;
            let (from, to) = (start.max(offset), (start + PAGE_SIZE).min(end));
            bytes[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&page[(from - start) as usize..(to - start) as usize]);
        }
        Ok(bytes.into())
    }
    async fn write_at(&self, offset: u64, bytes: Bytes) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        for number in pages_of(offset, bytes.len() as u64) {
            let start = number * PAGE_SIZE;
            if !self.content.lock().pages.contains_key(&number) {
                let page = self.read_below(start, PAGE_SIZE as usize).await?;
                self.content.lock().pages.entry(number).or_insert(page);
            }
            let (from, to) = (start.max(offset), (start + PAGE_SIZE).min(end));
            if let Some(page) = self.content.lock().pages.get_mut(&number) {
                page[(from - start) as usize..(to - start) as usize]
                    .copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
            }
        }
        let mut content = self.content.lock();
        content.size = content.size.max(end);
        Ok(())
    }
    async fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
    async fn size(&self) -> io::Result<u64> {
        Ok(self.content.lock().size)
    }
    async fn set_len(&self, len: u64) -> io::Result<()> {
        let mut content = self.content.lock();
        content.size = len;
        content.size_below = content.size_below.min(len);
        // What lies behind the cut must read as zeros if the file grows again.
        content.pages.retain(|number, _| number * PAGE_SIZE < len);
        if let Some(last) = content.pages.get_mut(&(len / PAGE_SIZE)) {
            last[(len % PAGE_SIZE) as usize..].fill(0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::memory_disk::MemoryDisk;
    use crate::random::splitmix64;

    /// The same random changes to an overlay and to a plain disk read the same; the disk below stays as it
    /// was.
    #[tokio::test]
    async fn it_behaves_as_a_disk_and_leaves_the_one_below_alone() {
        for seed in 0..30u64 {
            let (below, model) = (Arc::new(MemoryDisk::new()), MemoryDisk::new());
            let first = Bytes::from((0..10_000u32).map(|at| at as u8).collect::<Vec<_>>());
            for disk in [&*below, &model] {
                disk.create_folder("d").await.unwrap();
                let file = disk.open("d/f", OpenMode::CreateNew).await.unwrap();
                file.write_at(0, first.clone()).await.unwrap();
            }
            let overlay = OverlayDisk::new(below.clone());
            let mut state = seed;
            let mut random = |bound: u64| splitmix64(&mut state) % bound;
            for _ in 0..60 {
                let path = ["d/f", "d/g"][random(2) as usize];
                let (kind, offset, len, tag) = (random(8), random(15_000), random(6_000), random(256) as u8);
                let mut outcomes = Vec::new();
                for disk in [&overlay as &dyn Disk, &model] {
                    let outcome = async {
                        match kind {
                            0 => disk.open(path, OpenMode::CreateNew).await.map(|_| Bytes::new()),
                            1 => disk.remove(path).await.map(|()| Bytes::new()),
                            2 => disk.rename(path, "d/h").await.map(|()| Bytes::new()),
                            3 => disk
                                .open(path, OpenMode::Write)
                                .await?
                                .set_len(offset)
                                .await
                                .map(|()| Bytes::new()),
                            4 | 5 => {
                                let bytes = Bytes::from(vec![tag; len as usize]);
                                disk.open(path, OpenMode::Write).await?.write_at(offset, bytes).await?;
                                Ok(Bytes::new())
                            }
                            _ => disk.open(path, OpenMode::Read).await?.read_at(offset, len as usize).await,
                        }
                    };
                    outcomes.push(outcome.await.map_err(|error: io::Error| error.kind()));
                }
                assert_eq!(
                    outcomes[0], outcomes[1],
                    "seed {seed}: {kind} of {path} at {offset}, {len} bytes"
                );
                assert_eq!(overlay.list("d").await.unwrap(), model.list("d").await.unwrap(), "seed {seed}");
            }
            let file = below.open("d/f", OpenMode::Read).await.unwrap();
            assert_eq!(file.read_at(0, first.len()).await.unwrap(), first);
            assert_eq!((file.size().await.unwrap(), below.list("d").await.unwrap().len()), (10_000, 1));
        }
    }
}
