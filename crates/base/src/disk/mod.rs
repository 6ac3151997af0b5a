//! The disk as the stream layer sees it: a folder of files that are written at offsets and synced on request.
//!
//! What an implementation promises is what a POSIX file system promises, no more:
//! - written bytes are visible to reads at once, but survive a power loss only after [`DiskFile::sync_data`];
//! - a created, renamed or removed name survives a power loss only after [`Disk::sync_folder`] of its folder;
//! - a failed sync says nothing about what the disk holds, and must never be retried
//!   (source: Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
//!
//! The futures block their thread on a real disk: call them from tasks started with
//! [`crate::Spawner::spawn_dedicated`]. Only reads may be called anywhere: a worker does not wait for its
//! disk, others read instead.

pub(crate) mod direct;
pub mod memory_disk;
pub mod overlay_disk;
pub(crate) mod reads;

pub use crate::disk::direct::{WRITE_ALIGNMENT, write_buffer};
use async_trait::async_trait;
use bytes::Bytes;
use rustix::io::Errno;
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

/// The error of an open that finds no free file descriptor in the process.
pub fn out_of_files() -> io::Error {
    Errno::MFILE.into()
}

/// Whether the process, or the whole system, has no file descriptor left. Syncs of files never end like this.
pub fn is_out_of_files(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Whether a failed [`Disk::open`] says that the system has nothing left to open a file with: for certain no
/// file was opened, and a later try may find what this one lacked.
pub fn is_open_refused(error: &io::Error) -> bool {
    is_out_of_files(error) || error.kind() == io::ErrorKind::OutOfMemory
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
    /// Bytes of the whole disk, used or free; `u64::MAX`: it has no end, or nobody knows.
    async fn total_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_want_of_descriptors_is_told_from_other_failures() {
        assert!(is_out_of_files(&out_of_files()) && is_open_refused(&out_of_files()));
        assert!(is_out_of_files(&Errno::NFILE.into()));
        let no_memory: io::Error = Errno::NOMEM.into();
        assert!(is_open_refused(&no_memory) && !is_out_of_files(&no_memory));
        for other in [Errno::IO, Errno::NOSPC, Errno::NOENT, Errno::ACCESS] {
            assert!(!is_open_refused(&other.into()), "{other}");
        }
        assert!(!is_open_refused(&io::Error::other("simulated I/O error")));
    }
}
