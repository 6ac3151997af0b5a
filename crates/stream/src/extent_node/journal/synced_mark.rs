//! How far the journal was synced, noted in a file of its own after each sync and before the replies.
//!
//! ```text
//! journal/synced   u32 magic "LSY1", u32 zeros, u64 generation, u64 sequence number,
//!                  u64 CRC-64/NVME of bytes 0..24
//! ```
//!
//! The note itself is not synced: that would cost as much as the record. A process that is killed leaves the
//! last one; a power loss may leave an older one. What always holds: records up to it were synced. So if they
//! do not read, they are damaged, and were not just never finished.

use crate::error::{StreamError, not_made};
use base::checksum::crc64;
use base::codec::{Decoder, Encode};
use base::{Disk, DiskFile, OpenMode};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const SYNCED_PATH: &str = "journal/synced";
const MAGIC: u32 = u32::from_le_bytes(*b"LSY1");
const SIZE: usize = 32;

/// The newest record that was synced for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SyncPosition {
    pub(crate) generation: u64,
    pub(crate) sequence: u64,
}

impl SyncPosition {
    pub(crate) fn encode(self) -> Bytes {
        let mut out = Vec::with_capacity(SIZE);
        out.put_u32_field(MAGIC);
        out.put_u32_field(0);
        out.put_u64_field(self.generation);
        out.put_u64_field(self.sequence);
        let checksum = crc64(&[&out]);
        out.put_u64_field(checksum);
        out.into()
    }

    /// What the file says, if it is whole.
    pub(crate) fn decode(content: &[u8]) -> Option<Self> {
        let mut note = Decoder::new(content);
        (note.u32("magic").ok()? == MAGIC).then_some(())?;
        note.u32("zeros").ok()?;
        let generation = note.u64("generation").ok()?;
        let sequence = note.u64("sequence").ok()?;
        (note.u64("checksum").ok()? == crc64(&[content.get(..24)?]))
            .then_some(SyncPosition { generation, sequence })
    }
}

/// The open file.
pub(crate) struct SyncedMark {
    file: Arc<dyn DiskFile>,
    /// A note could not be written, which was logged.
    has_failed: AtomicBool,
}

impl SyncedMark {
    /// Opens the file, or makes it.
    pub(crate) async fn open(disk: &dyn Disk) -> Result<Self, StreamError> {
        let failed = |error: std::io::Error| not_made(SYNCED_PATH, &error);
        let is_there = disk.exists(SYNCED_PATH).await.map_err(failed)?;
        let mode = if is_there { OpenMode::Write } else { OpenMode::CreateNew };
        let file = disk.open(SYNCED_PATH, mode).await.map_err(failed)?;
        let has_failed = AtomicBool::new(false);
        let mark = SyncedMark { file, has_failed };
        if mark.file.size().await.map_err(failed)? < SIZE as u64 {
            // So that a note never needs space.
            mark.write(vec![0; SIZE].into()).await;
            mark.file.sync_data().await.map_err(failed)?;
        }
        if !is_there {
            disk.sync_folder("journal").await.map_err(failed)?;
        }
        Ok(mark)
    }

    /// Notes that the journal is synced up to there.
    pub(crate) async fn note(&self, synced: SyncPosition) {
        self.write(synced.encode()).await;
    }

    /// Without the note less is known about damage: nothing else depends on it.
    async fn write(&self, note: Bytes) {
        if let Err(error) = self.file.write_at(0, note).await
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(place = SYNCED_PATH, %error, "how far the journal is synced can't be noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_whole_or_not_at_all() {
        let synced = SyncPosition { generation: 1 << 60, sequence: 77 };
        let note = synced.encode();
        assert_eq!(SyncPosition::decode(&note), Some(synced));
        for bit in 0..note.len() * 8 {
            let mut flipped = note.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SyncPosition::decode(&flipped), None, "bit {bit}");
        }
        assert_eq!(SyncPosition::decode(&[0; SIZE]), None);
        assert_eq!(SyncPosition::decode(&note[..20]), None);
    }
}
