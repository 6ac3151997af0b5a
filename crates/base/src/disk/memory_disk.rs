//! A disk that lives in memory and forgets everything with the process: `--in-memory`, and tests without
//! faults.

use crate::disk::{Disk, DiskFile, OpenMode};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// A file system in memory. Syncs do nothing.
#[derive(Default)]
pub struct MemoryDisk {
    tree: Mutex<Tree>,
}

#[derive(Default)]
struct Tree {
    folders: BTreeSet<String>,
    files: BTreeMap<String, Arc<MemoryFile>>,
}

impl MemoryDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }
}

fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path}: no such file or folder"))
}

/// The last segment of `path` if it lies directly in `folder`.
pub fn name_in<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    let rest = if folder.is_empty() { path } else { path.strip_prefix(folder)?.strip_prefix('/')? };
    (!rest.is_empty() && !rest.contains('/')).then_some(rest)
}

#[async_trait]
impl Disk for MemoryDisk {
    async fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut tree = self.tree.lock();
        if mode == OpenMode::CreateNew {
            if tree.files.contains_key(path) {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{path}: exists")));
            }
            let file = Arc::new(MemoryFile::default());
            tree.files.insert(path.to_owned(), file.clone());
            return Ok(file);
        }
        tree.files.get(path).map(|file| file.clone() as Arc<dyn DiskFile>).ok_or_else(|| not_found(path))
    }
    async fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let tree = self.tree.lock();
        if !folder.is_empty() && !tree.folders.contains(folder) {
            return Err(not_found(folder));
        }
        let names: BTreeSet<String> = (tree.files.keys().chain(tree.folders.iter()))
            .filter_map(|path| name_in(folder, path))
            .map(str::to_owned)
            .collect();
        Ok(names.into_iter().collect())
    }
    async fn create_folder(&self, folder: &str) -> io::Result<()> {
        let mut tree = self.tree.lock();
        for (end, _) in folder.match_indices('/') {
            tree.folders.insert(folder[..end].to_owned());
        }
        tree.folders.insert(folder.to_owned());
        Ok(())
    }
    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let file = tree.files.remove(from).ok_or_else(|| not_found(from))?;
        tree.files.insert(to.to_owned(), file);
        Ok(())
    }
    async fn remove(&self, path: &str) -> io::Result<()> {
        self.tree.lock().files.remove(path).map(|_| ()).ok_or_else(|| not_found(path))
    }
    async fn sync_folder(&self, _folder: &str) -> io::Result<()> {
        Ok(())
    }
    async fn exists(&self, path: &str) -> io::Result<bool> {
        let tree = self.tree.lock();
        Ok(tree.files.contains_key(path) || tree.folders.contains(path))
    }
    async fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

#[derive(Default)]
struct MemoryFile {
    content: Mutex<Vec<u8>>,
}

#[async_trait]
impl DiskFile for MemoryFile {
    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let content = self.content.lock();
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(len).ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = content.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Bytes::copy_from_slice(bytes))
    }
    async fn write_at(&self, offset: u64, bytes: Bytes) -> io::Result<()> {
        let mut content = self.content.lock();
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let end = start.checked_add(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(&bytes);
        Ok(())
    }
    async fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
    async fn size(&self) -> io::Result<u64> {
        Ok(self.content.lock().len() as u64)
    }
    async fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.content.lock().resize(len, 0);
        Ok(())
    }
}
