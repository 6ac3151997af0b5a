//! An open file of the simulated disk: reads, writes that may end in part, syncs that may fail.
//!
//! What always holds: a write is visible at once, and durable only once a sync that began after it succeeds.

use super::SimDisk;
use super::content::{Change, Content};
use super::tree::not_found;
use async_trait::async_trait;
use base::disk::DiskFile;
use bytes::Bytes;
use std::io;

pub(super) struct SimFile {
    pub(super) disk: SimDisk,
    pub(super) id: u64,
    pub(super) path: String,
}

impl SimFile {
    /// Looks at the content; a file that was removed or left behind by a power loss reads as an error.
    fn with<T>(&self, look: impl FnOnce(&mut Content) -> io::Result<T>) -> io::Result<T> {
        let mut tree = self.disk.tree.lock();
        look(tree.files.get_mut(&self.id).ok_or_else(|| not_found(&self.path))?)
    }

    /// How many of `len` bytes at `offset` there is space for.
    fn room_at(&self, offset: u64, len: usize) -> usize {
        let tree = self.disk.tree.lock();
        let capacity = tree.faults.capacity_bytes;
        if capacity == 0 {
            return len;
        }
        let now = tree.files.get(&self.id).map_or(0, |content| content.current.len() as u64);
        let end_max = now + capacity.saturating_sub(tree.used_bytes());
        end_max.saturating_sub(offset).min(len as u64) as usize
    }

    /// How much of a write is done before it ends for want of space: nothing, all that there is space for, or
    /// less.
    fn part_of(&self, room: usize) -> usize {
        match self.disk.random.below(3) {
            0 => 0,
            1 => room,
            _ => self.disk.random.below(room as u64 + 1) as usize,
        }
    }
}

#[async_trait]
impl DiskFile for SimFile {
    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        self.disk.operation("read", &self.path, offset, &(len as u64).to_le_bytes()).await;
        self.with(|content| {
            let start = offset as usize;
            let bytes = content.current.get(start..start + len).ok_or(io::ErrorKind::UnexpectedEof)?;
            Ok(Bytes::copy_from_slice(bytes))
        })
    }

    async fn write_at(&self, offset: u64, mut bytes: Bytes) -> io::Result<()> {
        let room = self.room_at(offset, bytes.len());
        let full = room < bytes.len();
        if full {
            bytes.truncate(self.part_of(room));
        }
        // A write of nothing would not grow the file.
        let change =
            (!bytes.is_empty()).then(|| Change::Write { offset: offset as usize, bytes: bytes.clone() });
        // The bytes may reach the disk although the write never returns: so before the crash point.
        self.with(|content| {
            if let Some(change) = change {
                change.apply(&mut content.current);
                content.unsynced.push(change);
            }
            Ok(())
        })?;
        self.disk.operation("write", &self.path, offset, &bytes).await;
        if full {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on the simulated disk"));
        }
        Ok(())
    }

    async fn sync_data(&self) -> io::Result<()> {
        // What was written before the call is covered, nothing that comes while it runs.
        let covered = self.with(|content| Ok(content.unsynced.len()))?;
        self.disk.operation("sync", &self.path, 0, &[]).await;
        let (faults, fails) = {
            let faults = self.disk.tree.lock().faults;
            (faults, self.disk.random.one_in(faults.sync_fails_one_in))
        };
        if faults.skip_sync_of.is_some_and(|prefix| self.path.starts_with(prefix)) {
            return Ok(());
        }
        self.with(|content| {
            let covered = covered.min(content.unsynced.len());
            let changes: Vec<Change> = content.unsynced.drain(..covered).collect();
            for change in changes {
                if fails {
                    // The kernel calls the pages clean now: a later sync does not bring them back.
                    change.tear(&mut content.durable, &self.disk.random);
                } else {
                    change.apply(&mut content.durable);
                }
            }
            if fails { Err(io::Error::other("simulated I/O error")) } else { Ok(()) }
        })
    }

    async fn size(&self) -> io::Result<u64> {
        self.with(|content| Ok(content.current.len() as u64))
    }

    async fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.operation("set_len", &self.path, len, &[]).await;
        self.with(|content| {
            let change = Change::SetLen(len as usize);
            change.apply(&mut content.current);
            content.unsynced.push(change);
            Ok(())
        })
    }
}
