//! The cache over a disk in memory.

use crate::cache::block_cache::{BlockCache, CacheReading};
use crate::cache::index::CacheBounds;
use crate::cache::record::BlockKey;
use async_trait::async_trait;
use base::memory_disk::MemoryDisk;
use base::system::SystemClock;
use base::{Clock, Disk, DiskFile, OpenMode};
use bytes::Bytes;
use stamp::{ExtentName, Generation, Incarnation, StampId, StampLife, UniqueName};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BOUNDS: CacheBounds = CacheBounds { size_bytes_max: 512 << 20, blocks_max: 10 };

fn key(number: u64) -> BlockKey {
    let life = StampLife { stamp: StampId(1), generation: Generation(2) };
    let extent = ExtentName(UniqueName { incarnation: Incarnation(3), counter: 4 });
    BlockKey { life, extent, offset: number * 100 }
}

fn block(number: u64) -> Bytes {
    vec![number as u8; 100].into()
}

async fn open(disk: &Arc<dyn Disk>) -> Arc<BlockCache> {
    let env = base::system::environment_on(disk.clone());
    BlockCache::open(disk.clone(), env.clock.clone(), &*env.spawner, BOUNDS).await.expect("a cache")
}

/// Waits until the writer has done what `is_done` looks for.
async fn wait_until(cache: &BlockCache, is_done: impl Fn(CacheReading) -> bool) {
    let clock = SystemClock::new();
    for _ in 0..1000 {
        if is_done(cache.reading()) {
            return;
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", cache.reading());
}

async fn keep(cache: &BlockCache, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let before = cache.reading();
        cache.offer(key(number), block(number));
        wait_until(cache, |now| now.blocks != before.blocks).await;
    }
}

/// Flips a bit of each file in its middle.
async fn damage(disk: &Arc<dyn Disk>) {
    for name in disk.list("").await.expect("files") {
        let file = disk.open(&name, OpenMode::Write).await.expect("a file");
        let at = file.size().await.expect("a size") / 2;
        let byte = file.read_at(at, 1).await.expect("a byte")[0];
        file.write_at(at, vec![byte ^ 4].into()).await.expect("written");
    }
}

#[tokio::test]
async fn what_is_kept_is_found_and_found_again_by_the_next_start() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let cache = open(&disk).await;
    assert_eq!(cache.get(&key(1)).await, None);
    keep(&cache, 1..4).await;
    cache.offer(key(2), block(2));
    assert_eq!(cache.get(&key(1)).await, Some(block(1)));
    let other = BlockKey { life: StampLife { generation: Generation(9), ..key(1).life }, ..key(1) };
    assert_eq!(cache.get(&other).await, None);
    let reading = cache.reading();
    assert_eq!((reading.hits, reading.misses, reading.damaged, reading.blocks), (1, 2, 0, 3));
    cache.close().await;
    let cache = open(&disk).await;
    for number in 1..4 {
        assert_eq!(cache.get(&key(number)).await, Some(block(number)));
    }
    // The next file is another one.
    keep(&cache, 4..5).await;
    assert_eq!((cache.get(&key(4)).await, cache.reading().blocks), (Some(block(4)), 4));
}

#[tokio::test]
async fn a_process_that_was_killed_loses_its_newest_file_only() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let first = open(&disk).await;
    keep(&first, 1..3).await;
    first.close().await;
    let second = open(&disk).await;
    keep(&second, 3..5).await;
    let third = open(&disk).await;
    let found = [third.get(&key(2)).await, third.get(&key(3)).await];
    assert_eq!(found, [Some(block(2)), None]);
    assert_eq!(disk.list("").await.expect("files").len(), 1);
}

#[tokio::test]
async fn a_damaged_block_is_a_miss_and_may_come_again() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let cache = open(&disk).await;
    keep(&cache, 1..2).await;
    damage(&disk).await;
    assert_eq!((cache.get(&key(1)).await, cache.get(&key(1)).await), (None, None));
    let reading = cache.reading();
    assert_eq!((reading.damaged, reading.misses, reading.blocks), (1, 2, 0));
    keep(&cache, 1..2).await;
    assert_eq!(cache.get(&key(1)).await, Some(block(1)));
    cache.close().await;
    // A list that is damaged is none.
    damage(&disk).await;
    let cache = open(&disk).await;
    assert!(cache.get(&key(1)).await.is_none_or(|found| found == block(1)));
}

#[tokio::test]
async fn the_oldest_blocks_go_when_there_are_too_many() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let cache = open(&disk).await;
    keep(&cache, 0..10).await;
    cache.offer(key(10), block(10));
    wait_until(&cache, |now| now.blocks == 1).await;
    assert_eq!((cache.get(&key(10)).await, cache.get(&key(9)).await), (Some(block(10)), None));
    assert_eq!(disk.list("").await.expect("files").len(), 1);
}

/// A disk that is full, or fails.
struct SickDisk {
    disk: MemoryDisk,
    is_full: AtomicBool,
    fails: Arc<AtomicBool>,
    hangs: Arc<AtomicBool>,
}

struct SickFile {
    file: Arc<dyn DiskFile>,
    fails: Arc<AtomicBool>,
    hangs: Arc<AtomicBool>,
}

impl SickDisk {
    fn new(fails: &Arc<AtomicBool>) -> Self {
        let (disk, is_full, hangs) = (MemoryDisk::new(), false.into(), Arc::default());
        SickDisk { disk, is_full, fails: fails.clone(), hangs }
    }
}

#[async_trait]
impl Disk for SickDisk {
    async fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(path, mode).await?;
        Ok(Arc::new(SickFile { file, fails: self.fails.clone(), hangs: self.hangs.clone() }))
    }
    async fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.disk.list(folder).await
    }
    async fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.create_folder(folder).await
    }
    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to).await
    }
    async fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path).await
    }
    async fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.sync_folder(folder).await
    }
    async fn exists(&self, path: &str) -> io::Result<bool> {
        self.disk.exists(path).await
    }
    async fn free_bytes(&self) -> io::Result<u64> {
        Ok(if self.is_full.load(Ordering::Relaxed) { 0 } else { u64::MAX })
    }
}

#[async_trait]
impl DiskFile for SickFile {
    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        match self.fails.load(Ordering::Relaxed) {
            true => Err(io::Error::other("a bad sector")),
            false => self.file.read_at(offset, len).await,
        }
    }
    async fn write_at(&self, offset: u64, bytes: Bytes) -> io::Result<()> {
        match self.fails.load(Ordering::Relaxed) {
            true => Err(io::Error::other("a bad sector")),
            false => self.file.write_at(offset, bytes).await,
        }
    }
    async fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data().await
    }
    async fn size(&self) -> io::Result<u64> {
        self.file.size().await
    }
    async fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len).await
    }
}

#[tokio::test]
async fn a_full_disk_and_one_that_fails_keep_nothing_and_answer_misses() {
    for is_full in [true, false] {
        let fails = Arc::new(AtomicBool::new(false));
        let sick = Arc::new(SickDisk::new(&fails));
        let disk: Arc<dyn Disk> = sick.clone();
        let cache = open(&disk).await;
        if is_full {
            sick.is_full.store(true, Ordering::Relaxed);
        } else {
            keep(&cache, 1..2).await;
            fails.store(true, Ordering::Relaxed);
            assert_eq!(cache.get(&key(1)).await, None);
        }
        cache.offer(key(2), block(2));
        wait_until(&cache, |now| now.not_kept == 1).await;
        // Not before a while has gone by.
        sick.is_full.store(false, Ordering::Relaxed);
        fails.store(false, Ordering::Relaxed);
        cache.offer(key(3), block(3));
        wait_until(&cache, |now| now.not_kept == 2).await;
        assert_eq!((cache.get(&key(2)).await, cache.reading().size_bytes), (None, 0));
        assert_eq!(disk.list("").await.expect("files"), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_disk_that_does_not_answer_is_a_miss() {
    let sick = Arc::new(SickDisk::new(&Arc::default()));
    let disk: Arc<dyn Disk> = sick.clone();
    let cache = open(&disk).await;
    keep(&cache, 1..2).await;
    sick.hangs.store(true, Ordering::Relaxed);
    assert_eq!((cache.get(&key(1)).await, cache.reading().misses), (None, 1));
}
