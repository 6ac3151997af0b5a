//! The task that writes the blocks that were offered, and removes the oldest files.
//!
//! What always holds: the index names a block only once it is written; a file goes out of the index before it
//! is removed; after a failure nothing is written for [`PAUSE`].

use crate::cache::record::{BlockKey, Listed, encode_list, put_record};
use crate::cache::shared::{Shared, Waiting, file_name};
use base::{DiskFile, OpenMode};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long nothing is written after a failure.
const PAUSE: Duration = Duration::from_secs(30);
/// Bytes that others on the same disk are left.
const FREE_SIZE_BYTES_MIN: u64 = 1 << 30;

/// The file that is written, and where it ends.
struct Newest {
    file: Arc<dyn DiskFile>,
    end: u64,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    next_number: u64,
    newest: Option<Newest>,
    /// By the monotonic clock: nothing is written before it.
    paused_until: Duration,
    has_failed: bool,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, next_number: u64) -> Self {
        Writer { shared, next_number, newest: None, paused_until: Duration::ZERO, has_failed: false }
    }

    pub(super) async fn run(mut self) {
        loop {
            let Waiting { blocks, is_closing, .. } = self.shared.take_waiting();
            if !blocks.is_empty() {
                let count = blocks.len() as u64;
                if !self.keep(blocks).await {
                    self.shared.counts.not_kept.fetch_add(count, Ordering::Relaxed);
                }
                continue;
            }
            if is_closing {
                // Without its list the next start removes it.
                drop(self.finish().await);
                self.shared.has_ended.notify_waiters();
                return;
            }
            self.shared.changed.notified().await;
        }
    }

    /// Whether the blocks are kept.
    async fn keep(&mut self, blocks: Vec<(BlockKey, Bytes)>) -> bool {
        if self.shared.clock.monotonic() < self.paused_until {
            return false;
        }
        match self.write(blocks).await {
            Ok(()) => {
                self.has_failed = false;
                true
            }
            Err(error) => {
                if !self.has_failed {
                    tracing::warn!(%error, "the cache keeps nothing for a while");
                }
                self.has_failed = true;
                self.paused_until = self.shared.clock.monotonic() + PAUSE;
                self.give_up_newest().await;
                false
            }
        }
    }

    async fn write(&mut self, blocks: Vec<(BlockKey, Bytes)>) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut listed = Vec::with_capacity(blocks.len());
        for (key, block) in &blocks {
            let begin = bytes.len();
            put_record(&mut bytes, key, block);
            let size = (bytes.len() - begin) as u32;
            listed.push(Listed { hash: key.hash(), offset: begin as u64, size });
        }
        let is_full = {
            let index = self.shared.index.lock();
            index.is_full_with(bytes.len() as u64) || index.has_too_many()
        };
        if self.newest.is_none() || is_full {
            self.finish().await?;
            self.begin().await?;
        }
        let Some(newest) = &mut self.newest else { return Err(io::Error::other("there is no file")) };
        let (file, begin, length) = (newest.file.clone(), newest.end, bytes.len() as u64);
        file.write_at(begin, bytes.into()).await?;
        newest.end += length;
        let mut index = self.shared.index.lock();
        for block in listed {
            index.add(Listed { offset: begin + block.offset, ..block });
        }
        Ok(())
    }

    /// Begins a file, and removes the oldest ones until there is room for it.
    async fn begin(&mut self) -> io::Result<()> {
        let dropped = self.shared.index.lock().make_room();
        self.remove(dropped).await?;
        let needed = FREE_SIZE_BYTES_MIN + self.shared.index.lock().file_size_bytes();
        while self.shared.disk.free_bytes().await? < needed {
            let oldest = self.shared.index.lock().drop_oldest();
            let Some(oldest) = oldest else {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "its disk is all but full"));
            };
            self.remove(vec![oldest]).await?;
        }
        let number = self.next_number;
        self.next_number += 1;
        let file = self.shared.disk.open(&file_name(number), OpenMode::CreateNew).await?;
        self.shared.files.lock().insert(number, file.clone());
        self.shared.index.lock().add_file(number, 0, Vec::new());
        self.newest = Some(Newest { file, end: 0 });
        Ok(())
    }

    /// Writes the list of the newest file.
    async fn finish(&mut self) -> io::Result<()> {
        let Some(newest) = self.newest.take() else { return Ok(()) };
        let list = encode_list(self.shared.index.lock().newest_blocks());
        newest.file.write_at(newest.end, list.into()).await
    }

    /// Nobody knows what the newest file has.
    async fn give_up_newest(&mut self) {
        if self.newest.take().is_some() {
            let dropped = self.shared.index.lock().drop_newest();
            drop(self.remove(dropped.into_iter().collect()).await);
        }
    }

    async fn remove(&self, numbers: Vec<u64>) -> io::Result<()> {
        for number in numbers {
            self.shared.files.lock().remove(&number);
            self.shared.disk.remove(&file_name(number)).await?;
        }
        Ok(())
    }
}
