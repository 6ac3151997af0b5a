//! A file that grows by whole lines.
//!
//! What always holds: what is before [`Output::size_bytes`] are whole lines; what a failed write has left
//! behind it is cut off by [`Output::cut`], and written over by the next one.

use crate::error::ToolError;
use base::{Disk, DiskFile, OpenMode};
use bytes::Bytes;
use std::sync::Arc;

/// Bytes that are written at once, at most: larger writes go past the page cache and wait for the disk, while
/// other workers wait for this one. Syncs wait for it instead.
const PIECE_SIZE_BYTES: usize = 60 << 10;

/// The file.
pub(crate) struct Output {
    file: Arc<dyn DiskFile>,
    path: String,
    size_bytes: u64,
}

impl Output {
    /// Makes the file, in the place of one that is there.
    pub(crate) async fn create(disk: &dyn Disk, path: &str) -> Result<Self, ToolError> {
        let failed = |error| ToolError::file(path, error);
        if disk.exists(path).await.map_err(failed)? {
            disk.remove(path).await.map_err(failed)?;
        }
        let file = disk.open(path, OpenMode::CreateNew).await.map_err(failed)?;
        Ok(Output { file, path: path.to_owned(), size_bytes: 0 })
    }

    /// Goes on with the file behind so many bytes; what is behind them is cut off.
    pub(crate) async fn resume(disk: &dyn Disk, path: &str, size_bytes: u64) -> Result<Self, ToolError> {
        let failed = |error| ToolError::file(path, error);
        let file = disk.open(path, OpenMode::Write).await.map_err(failed)?;
        let found = file.size().await.map_err(failed)?;
        if found < size_bytes {
            let what = format!("{path} has {found} bytes, and its state says {size_bytes}: it was changed");
            return Err(ToolError::Refused(what));
        }
        let output = Output { file, path: path.to_owned(), size_bytes };
        output.cut().await?;
        Ok(output)
    }

    pub(crate) async fn append(&mut self, lines: Vec<u8>) -> Result<(), ToolError> {
        let (mut at, mut left) = (self.size_bytes, Bytes::from(lines));
        while !left.is_empty() {
            let piece = left.split_to(left.len().min(PIECE_SIZE_BYTES));
            let size = piece.len() as u64;
            self.file.write_at(at, piece).await.map_err(|error| ToolError::file(&self.path, error))?;
            at += size;
        }
        self.size_bytes = at;
        Ok(())
    }

    /// Cuts off what a write that failed, or was killed, has left.
    pub(crate) async fn cut(&self) -> Result<(), ToolError> {
        self.file.set_len(self.size_bytes).await.map_err(|error| ToolError::file(&self.path, error))
    }

    pub(crate) async fn sync(&self) -> Result<(), ToolError> {
        self.file.sync_data().await.map_err(|error| ToolError::file(&self.path, error))
    }

    pub(crate) fn file(&self) -> Arc<dyn DiskFile> {
        self.file.clone()
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}
