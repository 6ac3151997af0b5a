//! The checksum of what an import has done of its file, by which a later run knows that it is the same file.
//!
//! What always holds: it is over all bytes before [`Compared::end`], each of which is read once by a run;
//! memory is a piece of the file.

use crate::environment::{Progress, Rate, Rest, ToolEnvironment};
use crate::error::ToolError;
use base::checksum::Crc64;
use base::{Disk, DiskFile, OpenMode};
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are read at once.
const PIECE_SIZE_BYTES: u64 = 4 << 20;
/// Progress is shown so often.
const EVERY: Duration = Duration::from_millis(250);

/// The checksum of the beginning of a file.
pub(super) struct Compared {
    file: Arc<dyn DiskFile>,
    path: String,
    size_bytes: u64,
    checksum: Crc64,
    end: u64,
}

impl Compared {
    /// Of nothing yet.
    pub(super) async fn open(disk: &dyn Disk, path: &str) -> Result<Self, ToolError> {
        let failed = |error| ToolError::file(path, error);
        let file = disk.open(path, OpenMode::Read).await.map_err(failed)?;
        let size_bytes = file.size().await.map_err(failed)?;
        Ok(Compared { file, path: path.to_owned(), size_bytes, checksum: Crc64::default(), end: 0 })
    }

    /// Bytes of the file, when it was opened.
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// How many bytes it is of.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn checksum(&self) -> u64 {
        self.checksum.value()
    }

    /// Reads on to an offset, which is not beyond the file's end.
    pub(super) async fn read_to(&mut self, end: u64) -> Result<(), ToolError> {
        while self.end < end {
            self.read_piece(end).await?;
        }
        Ok(())
    }

    async fn read_piece(&mut self, end: u64) -> Result<(), ToolError> {
        let size = (end - self.end).min(PIECE_SIZE_BYTES);
        let piece = self.file.read_at(self.end, size as usize).await;
        self.checksum.update(&piece.map_err(|error| ToolError::file(&self.path, error))?);
        self.end += size;
        Ok(())
    }

    /// Reads all that an earlier run has done, and whether it is what that run has read: `checksum` is of the
    /// first `compared_size` bytes of these. Shows its progress.
    pub(super) async fn check(
        &mut self,
        (checksum, compared_size): (u64, u64),
        done_to: u64,
        environment: &mut ToolEnvironment<'_>,
    ) -> Result<bool, ToolError> {
        if self.size_bytes < compared_size.max(done_to) {
            return Ok(false);
        }
        let clock = environment.surroundings.clock.clone();
        let (mut rate, mut shown_at) = (Rate::new(clock.monotonic(), 0), clock.monotonic());
        for end in [compared_size, compared_size.max(done_to)] {
            while self.end < end {
                self.read_piece(end).await?;
                let (now, done) = (clock.monotonic(), self.end >> 20);
                if now.saturating_sub(shown_at) >= EVERY {
                    shown_at = now;
                    let rest = Rest::About((done_to >> 20).saturating_sub(done));
                    let rate = rate.look(now, done);
                    (environment.watcher)(&Progress { verb: "comparing the file (MiB)", done, rate, rest });
                }
                if environment.stop.is_set() {
                    return Err(ToolError::Stopped);
                }
            }
            if end == compared_size && self.checksum() != checksum {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::memory_disk::MemoryDisk;
    use bytes::Bytes;

    async fn compared(disk: &MemoryDisk) -> Compared {
        Compared::open(disk, "f").await.expect("a file")
    }

    /// Only the first 64 KiB were compared.
    #[tokio::test]
    async fn a_change_before_the_end_is_noticed() {
        let disk = MemoryDisk::new();
        let file = disk.open("f", OpenMode::CreateNew).await.expect("a file");
        let size = PIECE_SIZE_BYTES + 200_000;
        file.write_at(0, Bytes::from(vec![7; size as usize])).await.expect("written");
        let mut before = compared(&disk).await;
        // As it goes on with an import, in any steps.
        for end in [0, 10, 70_000, size - 1] {
            before.read_to(end).await.expect("read");
        }
        let (mut same, mut behind) = (compared(&disk).await, compared(&disk).await);
        same.read_to(size - 1).await.expect("read");
        assert_eq!((same.end(), same.checksum()), (size - 1, before.checksum()));
        file.write_at(size - 1, Bytes::from_static(b"x")).await.expect("written");
        behind.read_to(size - 1).await.expect("read");
        assert_eq!(behind.checksum(), before.checksum(), "what is behind the end may change");
        file.write_at(size - 100_000, Bytes::from_static(b"x")).await.expect("written");
        let mut changed = compared(&disk).await;
        changed.read_to(size - 1).await.expect("read");
        assert_ne!(changed.checksum(), before.checksum());
    }
}
