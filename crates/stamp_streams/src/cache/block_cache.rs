//! The cache from outside.

use crate::cache::index::{CacheBounds, Index, Place};
use crate::cache::record::{BlockKey, Listed, block_of, decode_list, list_size, record_size};
use crate::cache::shared::{Counts, FILE_PREFIX, Shared, file_name};
use crate::cache::writer::Writer;
use base::{Clock, Disk, DiskFile, OpenMode, Spawner};
use bytes::Bytes;
use futures_util::future::{Either, select};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Bytes of blocks that wait to be written: what is offered beyond that is not kept.
const WAITING_SIZE_BYTES_MAX: u64 = 16 << 20;
/// How long a read may take: what hangs is a miss, and the object store is asked.
const READ_FOR_MAX: Duration = Duration::from_secs(1);
/// How long the end of the process waits for the list of the newest file.
const CLOSE_FOR_MAX: Duration = Duration::from_secs(2);
/// Bytes of the end of a file that are read first.
const LIST_READ_SIZE_BYTES: u64 = 256 << 10;

/// What a cache has done and has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheReading {
    /// Reads that it answered.
    pub hits: u64,
    /// Reads that it did not.
    pub misses: u64,
    /// Blocks that it had, and could not read or whose checksum was wrong. They are misses, too.
    pub damaged: u64,
    /// Blocks that were offered and not kept: the disk was slow, full or failed.
    pub not_kept: u64,
    /// Bytes on the disk.
    pub size_bytes: u64,
    /// Blocks on the disk.
    pub blocks: u64,
}

/// Blocks of extents on a local disk. Dropped without [`Self::close`], it loses the blocks of its newest
/// file.
pub struct BlockCache(Arc<Shared>);

fn number_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix(FILE_PREFIX)?, 16).ok()
}

/// The blocks of a file that was finished; none if it was not, or is damaged.
async fn listed_blocks(file: &dyn DiskFile) -> io::Result<Option<(u64, Vec<Listed>)>> {
    let size = file.size().await?;
    let length = size.min(LIST_READ_SIZE_BYTES);
    let end = file.read_once_at(size - length, length as usize).await?;
    let Some(list_length) = list_size(&end).filter(|list_length| *list_length <= size) else {
        return Ok(None);
    };
    let list = match list_length <= length {
        true => end.slice((length - list_length) as usize..),
        false => file.read_once_at(size - list_length, list_length as usize).await?,
    };
    Ok(decode_list(&list).map(|blocks| (size, blocks)))
}

impl BlockCache {
    /// Opens the cache in a folder, which is all its own: files of a former one are used or removed.
    ///
    /// # Errors
    ///
    /// If the folder can't be listed, or there is no thread for the writer. Single files that can't be read
    /// are as good as none.
    pub async fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        spawner: &dyn Spawner,
        bounds: CacheBounds,
    ) -> io::Result<Arc<Self>> {
        let (mut index, mut files) = (Index::new(bounds), BTreeMap::new());
        let names = disk.list("").await?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        for number in &numbers {
            let name = file_name(*number);
            let mut dropped = Vec::new();
            let opened = disk.open(&name, OpenMode::Read).await;
            let listed = match &opened {
                Ok(file) => listed_blocks(&**file).await.ok().flatten(),
                Err(_) => None,
            };
            match (opened, listed) {
                (Ok(file), Some((size_bytes, blocks))) => {
                    index.add_file(*number, size_bytes, blocks);
                    files.insert(*number, file);
                    dropped = index.make_room();
                }
                _ => dropped.push(*number),
            }
            for number in dropped {
                files.remove(&number);
                drop(disk.remove(&file_name(number)).await);
            }
        }
        let shared = Arc::new(Shared {
            disk,
            clock,
            index: Mutex::new(index),
            files: Mutex::new(files),
            waiting: Mutex::default(),
            changed: Notify::new(),
            has_ended: Notify::new(),
            counts: Counts::default(),
        });
        let writer = Writer::new(shared.clone(), numbers.last().map_or(0, |last| last + 1));
        spawner.spawn_dedicated("block cache", Box::pin(writer.run()))?;
        Ok(Arc::new(BlockCache(shared)))
    }

    /// The block, as it was offered, if it is there and undamaged.
    pub(crate) async fn get(&self, key: &BlockKey) -> Option<Bytes> {
        let (shared, hash) = (&self.0, key.hash());
        let found = self.find(hash);
        let Some((place, file)) = found else {
            shared.counts.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let read = file.read_at(place.offset, place.size as usize);
        let record = match select(read, shared.clock.sleep(READ_FOR_MAX)).await {
            Either::Left((record, _)) => record.ok(),
            Either::Right(_) => None,
        };
        let block = record.and_then(|record| block_of(&record, key));
        let counted = if block.is_some() { &shared.counts.hits } else { &shared.counts.misses };
        counted.fetch_add(1, Ordering::Relaxed);
        if block.is_none() {
            shared.counts.damaged.fetch_add(1, Ordering::Relaxed);
            shared.index.lock().forget(hash, place);
        }
        block
    }

    fn find(&self, hash: u64) -> Option<(Place, Arc<dyn DiskFile>)> {
        let place = self.0.index.lock().place(hash)?;
        Some((place, self.0.files.lock().get(&place.file)?.clone()))
    }

    /// Keeps a block, unless it is there or the disk does not keep up. Never waits.
    pub(crate) fn offer(&self, key: BlockKey, block: Bytes) {
        let shared = &self.0;
        if shared.index.lock().place(key.hash()).is_some() {
            return;
        }
        let size_bytes = record_size(&block) as u64;
        {
            let mut waiting = shared.waiting.lock();
            if waiting.is_closing || waiting.size_bytes + size_bytes > WAITING_SIZE_BYTES_MAX {
                drop(waiting);
                shared.counts.not_kept.fetch_add(1, Ordering::Relaxed);
                return;
            }
            waiting.size_bytes += size_bytes;
            waiting.blocks.push((key, block));
        }
        shared.changed.notify_one();
    }

    /// What it has done and has.
    pub fn reading(&self) -> CacheReading {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (counts, index) = (&self.0.counts, self.0.index.lock());
        CacheReading {
            hits: of(&counts.hits),
            misses: of(&counts.misses),
            damaged: of(&counts.damaged),
            not_kept: of(&counts.not_kept),
            size_bytes: index.size_bytes(),
            blocks: index.count() as u64,
        }
    }

    /// Ends the writer, which lists the blocks of its file: the next start finds them. Waits for a short time
    /// only.
    pub async fn close(&self) {
        let ended = pin!(self.0.has_ended.notified());
        self.0.waiting.lock().is_closing = true;
        self.0.changed.notify_one();
        match select(ended, self.0.clock.sleep(CLOSE_FOR_MAX)).await {
            Either::Left(_) => {}
            Either::Right(_) => tracing::info!("the cache did not end in time; its newest file is lost"),
        }
    }
}

impl Drop for BlockCache {
    fn drop(&mut self) {
        self.0.waiting.lock().is_closing = true;
        self.0.changed.notify_one();
    }
}
