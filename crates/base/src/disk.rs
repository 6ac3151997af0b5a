//! The disk as the stream layer sees it: a folder of files that are written at offsets and synced on request.
//!
//! What an implementation promises is what a POSIX file system promises, no more:
//! - written bytes are visible to reads at once, but survive a power loss only after [`DiskFile::sync_data`];
//! - a created, renamed or removed name survives a power loss only after [`Disk::sync_folder`] of its folder;
//! - a failed sync says nothing about what the disk holds, and must never be retried
//!   (source: Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
//!
//! The futures may block their thread on a real disk: call them from tasks started with
//! [`crate::Spawner::spawn_dedicated`], or where a blocking read is acceptable.

use async_trait::async_trait;
use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// How [`Disk::open`] treats a file that is there, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; opened for reading only.
    Read,
    /// Must exist; opened for reading and writing.
    Write,
    /// Must not exist; created empty.
    CreateNew,
}

/// A folder tree, addressed by relative paths with `/` between segments. `""` is the root.
#[async_trait]
pub trait Disk: Send + Sync + 'static {
    /// Opens or creates a file.
    async fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Names (last segments) of the files and folders in `folder`, sorted. A missing folder is an error.
    async fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Makes a folder and its missing parents; fine if it exists.
    async fn create_folder(&self, folder: &str) -> io::Result<()>;
    /// Moves a file, replacing what is at `to`.
    async fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    async fn remove(&self, path: &str) -> io::Result<()>;
    /// Makes the names in `folder` durable.
    async fn sync_folder(&self, folder: &str) -> io::Result<()>;
    /// Whether a file is at `path`.
    async fn exists(&self, path: &str) -> io::Result<bool>;
    /// Bytes that can still be written before the disk is full, as far as known.
    async fn free_bytes(&self) -> io::Result<u64>;
}

/// An open file. All methods take offsets, so one handle serves many tasks.
#[async_trait]
pub trait DiskFile: Send + Sync + 'static {
    /// Exactly `len` bytes from `offset`; fewer in the file is `UnexpectedEof`.
    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes>;
    /// As [`Self::read_at`], for bytes that are not worth keeping in memory: nobody reads them again soon.
    async fn read_once_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        self.read_at(offset, len).await
    }
    /// Writes all of `bytes` at `offset`, growing the file if needed.
    async fn write_at(&self, offset: u64, bytes: Bytes) -> io::Result<()>;
    /// Returns when all bytes written before the call are durable (`fdatasync`).
    async fn sync_data(&self) -> io::Result<()>;
    /// The file's size in bytes.
    async fn size(&self) -> io::Result<u64>;
    /// Cuts or grows (with zeros) the file.
    async fn set_len(&self, len: u64) -> io::Result<()>;
}
