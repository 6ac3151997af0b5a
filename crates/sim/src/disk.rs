//! A disk that keeps exactly what it must, and lies where a real one may.
//!
//! Written bytes are visible at once, and stay so when only the process ends. What survives a power loss is
//! what was synced, plus any part of the rest: each unsynced write is kept, dropped, or torn at 512-byte
//! sectors; unsynced names are kept up to a random point. A sync can fail, and then what it covered may be
//! lost even if a later sync succeeds. Bits can be flipped, space (a write may then be done in part) and file
//! descriptors can run out, and the disk can die at a chosen operation.

use crate::world::SimRandom;
use async_trait::async_trait;
use base::checksum::crc64;
use base::disk::{Disk, DiskFile, OpenMode, out_of_files};
use base::memory_disk::name_in;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const SECTOR_SIZE: usize = 512;

/// How often the disk misbehaves, each as "one in"; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A sync fails.
    pub sync_fails_one_in: u64,
    /// An operation takes some milliseconds of virtual time.
    pub slow_one_in: u64,
    /// Making a file finds no file descriptor.
    pub create_refused_one_in: u64,
    /// Bytes that all files may hold together; 0 is no limit.
    pub capacity_bytes: u64,
    /// From this operation on there is no room for more bytes; 0: never.
    pub full_at_operation: u64,
    /// The disk dies at the operation with this number (see [`SimDisk::operation_count`]); 0 is never.
    pub crash_at_operation: u64,
    /// A fault planted on purpose: syncs of paths with this prefix do nothing and report success.
    pub skip_sync_of: Option<&'static str>,
}

/// The simulated disk. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    tree: Arc<Mutex<Tree>>,
    random: SimRandom,
    /// Whether the disk is dead.
    crash: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct Tree {
    folders: BTreeSet<String>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    name_changes: Vec<NameChange>,
    files: BTreeMap<u64, Content>,
    next_file: u64,
    faults: Faults,
    operations: u64,
    trace: u64,
}

#[derive(Clone)]
struct NameChange {
    folder: String,
    /// Names set (`Some`) and removed (`None`) by one operation, atomically.
    changes: Vec<(String, Option<u64>)>,
}

#[derive(Default)]
struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Bytes },
    SetLen(usize),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*offset..end].copy_from_slice(bytes);
            }
            Change::SetLen(len) => to.resize(*len, 0),
        }
    }

    /// What a power loss leaves of this change.
    fn tear(&self, to: &mut Vec<u8>, random: &SimRandom) {
        let Change::Write { offset, bytes } = self else {
            return if random.one_in(2) {
                self.apply(to)
            };
        };
        match random.below(3) {
            0 => {}
            1 => self.apply(to),
            _ => {
                let mut at = 0;
                while at < bytes.len() {
                    let sector_end = (offset + at + 1).next_multiple_of(SECTOR_SIZE) - offset;
                    let end = sector_end.min(bytes.len());
                    if random.one_in(2) {
                        Change::Write { offset: offset + at, bytes: bytes.slice(at..end) }.apply(to);
                    }
                    at = end;
                }
            }
        }
    }
}

impl SimDisk {
    pub(crate) fn new(random: SimRandom) -> Self {
        SimDisk { tree: Arc::default(), random, crash: Arc::new(watch::Sender::new(false)) }
    }

    /// Sets how the disk misbehaves from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.tree.lock().faults = faults;
    }

    /// Leaves room for `free_bytes` more from now on; `None` is no limit.
    pub fn set_free_bytes(&self, free_bytes: Option<u64>) {
        let mut tree = self.tree.lock();
        // A capacity of 0 would be no limit.
        tree.faults.capacity_bytes =
            free_bytes.map_or(0, |free_bytes| (tree.used_bytes() + free_bytes).max(1));
    }

    /// Operations so far.
    pub fn operation_count(&self) -> u64 {
        self.tree.lock().operations
    }

    /// A digest of every operation so far: equal for equal runs.
    pub fn trace(&self) -> u64 {
        self.tree.lock().trace
    }

    /// Paths and sizes of all files.
    pub fn files(&self) -> Vec<(String, u64)> {
        let tree = self.tree.lock();
        tree.names.iter().map(|(path, id)| (path.clone(), tree.files[id].current.len() as u64)).collect()
    }

    /// Flips two bits of one byte of a file, also in what is durable: more than a checksum can undo.
    pub fn garble(&self, path: &str, at: u64) {
        self.flip_bit(path, at * 8 + 1);
        self.flip_bit(path, at * 8 + 6);
    }

    /// Flips one bit of a file, also in what is durable.
    pub fn flip_bit(&self, path: &str, bit: u64) {
        let mut tree = self.tree.lock();
        let Some(id) = tree.names.get(path).copied() else {
            return;
        };
        let Some(content) = tree.files.get_mut(&id) else {
            return;
        };
        for bytes in [&mut content.current, &mut content.durable] {
            if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }

    /// Cuts a file to `len` bytes, or removes it, also in what is durable: damage, not an operation.
    pub fn cut(&self, path: &str, len: Option<u64>) {
        let mut tree = self.tree.lock();
        match (len, tree.names.get(path).copied()) {
            (None, _) => {
                tree.names.remove(path);
                tree.durable_names.remove(path);
            }
            (Some(len), Some(id)) => {
                if let Some(content) = tree.files.get_mut(&id) {
                    content.current.truncate(len as usize);
                    content.durable.truncate(len as usize);
                }
            }
            (Some(_), None) => {}
        }
    }

    /// Gives a file other bytes, also in what is durable: damage, not an operation.
    pub fn replace(&self, path: &str, bytes: Vec<u8>) {
        let mut tree = self.tree.lock();
        if let Some(id) = tree.names.get(path).copied()
            && let Some(content) = tree.files.get_mut(&id)
        {
            content.durable = bytes.clone();
            content.current = bytes;
        }
    }

    /// Every file with its bytes.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let tree = self.tree.lock();
        tree.names.iter().map(|(path, id)| (path.clone(), tree.files[id].current.clone())).collect()
    }

    /// A healthy disk with the same files, at rest.
    pub(crate) fn copy(&self, random: SimRandom) -> Self {
        let copy = SimDisk::new(random);
        {
            let (from, mut to) = (self.tree.lock(), copy.tree.lock());
            to.folders = from.folders.clone();
            to.names = from.names.clone();
            to.durable_names = from.names.clone();
            to.next_file = from.next_file;
            for (id, content) in &from.files {
                let (current, durable) = (content.current.clone(), content.current.clone());
                to.files.insert(*id, Content { current, durable, unsynced: Vec::new() });
            }
        }
        copy
    }

    /// Completes when the disk has died.
    pub(crate) async fn crashed(&self) {
        let mut crash = self.crash.subscribe();
        // The sender lives as long as the disk.
        let _ = crash.wait_for(|crashed| *crashed).await;
    }

    /// Kills the disk now: operations under way never return.
    pub fn crash(&self) {
        self.crash.send_replace(true);
    }

    /// The process and the power are gone; what is left is what the next life finds.
    pub(crate) fn lose_power(&self) {
        let mut tree = self.tree.lock();
        let tree = &mut *tree;
        // Names: per folder, changes are kept up to a random point, as a journaling file system does.
        let mut kept: BTreeMap<String, bool> = BTreeMap::new();
        for change in std::mem::take(&mut tree.name_changes) {
            let keep = kept.entry(change.folder.clone()).or_insert(true);
            *keep &= !self.random.one_in(3);
            if *keep {
                set_names(&mut tree.durable_names, &change.changes);
            }
        }
        tree.names = tree.durable_names.clone();
        let named: BTreeSet<u64> = tree.names.values().copied().collect();
        tree.files.retain(|id, _| named.contains(id));
        for content in tree.files.values_mut() {
            for change in std::mem::take(&mut content.unsynced) {
                change.tear(&mut content.durable, &self.random);
            }
            content.current = content.durable.clone();
        }
        tree.faults.crash_at_operation = 0;
        self.crash.send_replace(false);
    }

    /// Only the process is gone: the next life finds all that was written, and what was not synced still is
    /// not.
    pub(crate) fn lose_process(&self) {
        self.tree.lock().faults.crash_at_operation = 0;
        self.crash.send_replace(false);
    }

    /// Every operation passes here first: it is counted, may be slow, and may be the last.
    async fn operation(&self, what: &str, path: &str, offset: u64, bytes: &[u8]) {
        let (slow, dies) = {
            let mut tree = self.tree.lock();
            tree.operations += 1;
            let number = tree.operations;
            let parts = [
                &tree.trace.to_le_bytes()[..],
                what.as_bytes(),
                path.as_bytes(),
                &offset.to_le_bytes(),
                bytes,
            ];
            tree.trace = crc64(&parts);
            if tree.faults.full_at_operation == number {
                // A capacity of 0 would be no limit.
                tree.faults.capacity_bytes = tree.used_bytes().max(1);
            }
            (self.random.one_in(tree.faults.slow_one_in), tree.faults.crash_at_operation == number)
        };
        if dies {
            self.crash();
        }
        if *self.crash.borrow() {
            std::future::pending::<()>().await;
        }
        if slow {
            tokio::time::sleep(Duration::from_millis(1 + self.random.below(5))).await;
        } else if self.random.one_in(2) {
            tokio::task::yield_now().await;
        }
        if *self.crash.borrow() {
            std::future::pending::<()>().await;
        }
    }
}

fn set_names(names: &mut BTreeMap<String, u64>, changes: &[(String, Option<u64>)]) {
    for (path, file) in changes {
        match file {
            Some(file) => names.insert(path.clone(), *file),
            None => names.remove(path),
        };
    }
}

impl Tree {
    fn change_names(&mut self, path: &str, changes: Vec<(String, Option<u64>)>) {
        set_names(&mut self.names, &changes);
        self.name_changes.push(NameChange { folder: folder_of(path).to_owned(), changes });
    }

    /// Bytes of all files that have a name: what is removed takes no more space, as if nobody had it open.
    fn used_bytes(&self) -> u64 {
        self.names.values().map(|id| self.files[id].current.len() as u64).sum()
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path}: no such file or folder"))
}

#[async_trait]
impl Disk for SimDisk {
    async fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.operation("open", path, 0, &[]).await;
        let refused_one_in = self.tree.lock().faults.create_refused_one_in;
        if mode == OpenMode::CreateNew && self.random.one_in(refused_one_in) {
            return Err(out_of_files());
        }
        let mut tree = self.tree.lock();
        let id = match (mode, tree.names.get(path).copied()) {
            (OpenMode::CreateNew, Some(_)) => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{path}: exists")));
            }
            (OpenMode::CreateNew, None) => {
                tree.next_file += 1;
                let id = tree.next_file;
                tree.files.insert(id, Content::default());
                tree.change_names(path, vec![(path.to_owned(), Some(id))]);
                id
            }
            (_, Some(id)) => id,
            (_, None) => return Err(not_found(path)),
        };
        Ok(Arc::new(SimFile { disk: self.clone(), id, path: path.to_owned() }))
    }

    async fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.operation("list", folder, 0, &[]).await;
        let tree = self.tree.lock();
        if !folder.is_empty() && !tree.folders.contains(folder) {
            return Err(not_found(folder));
        }
        let names: BTreeSet<String> = (tree.names.keys().chain(tree.folders.iter()))
            .filter_map(|path| name_in(folder, path))
            .map(str::to_owned)
            .collect();
        Ok(names.into_iter().collect())
    }

    async fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.operation("create_folder", folder, 0, &[]).await;
        // Folders are kept at once: the layers make them before anything that matters.
        self.tree.lock().folders.insert(folder.to_owned());
        Ok(())
    }

    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.operation("rename", from, 0, to.as_bytes()).await;
        let mut tree = self.tree.lock();
        let id = tree.names.get(from).copied().ok_or_else(|| not_found(from))?;
        tree.change_names(from, vec![(from.to_owned(), None), (to.to_owned(), Some(id))]);
        Ok(())
    }

    async fn remove(&self, path: &str) -> io::Result<()> {
        self.operation("remove", path, 0, &[]).await;
        let mut tree = self.tree.lock();
        if !tree.names.contains_key(path) {
            return Err(not_found(path));
        }
        tree.change_names(path, vec![(path.to_owned(), None)]);
        Ok(())
    }

    async fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.operation("sync_folder", folder, 0, &[]).await;
        let mut tree = self.tree.lock();
        let tree = &mut *tree;
        for change in tree.name_changes.iter().filter(|change| change.folder == folder) {
            set_names(&mut tree.durable_names, &change.changes);
        }
        tree.name_changes.retain(|change| change.folder != folder);
        Ok(())
    }

    async fn exists(&self, path: &str) -> io::Result<bool> {
        self.operation("exists", path, 0, &[]).await;
        let tree = self.tree.lock();
        Ok(tree.names.contains_key(path) || tree.folders.contains(path))
    }

    async fn free_bytes(&self) -> io::Result<u64> {
        let tree = self.tree.lock();
        let capacity = tree.faults.capacity_bytes;
        Ok(if capacity == 0 { u64::MAX } else { capacity.saturating_sub(tree.used_bytes()) })
    }

    async fn total_bytes(&self) -> io::Result<u64> {
        let capacity = self.tree.lock().faults.capacity_bytes;
        Ok(if capacity == 0 { u64::MAX } else { capacity })
    }
}

struct SimFile {
    disk: SimDisk,
    id: u64,
    path: String,
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

    /// How much of a write is done before it ends for want of space: nothing, all that there is room for, or
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
        // The bytes may reach the disk although the process never learns of it: so before the crash point.
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

#[cfg(test)]
mod tests {
    use crate::World;
    use base::{Disk, OpenMode};
    use bytes::Bytes;

    #[test]
    fn synced_bytes_survive_and_unsynced_ones_sometimes_do_not() {
        let mut lost = 0;
        for seed in 0..50 {
            let world = World::new(seed);
            world.run(|env, _| async move {
                let file = env.disk.open("f", OpenMode::CreateNew).await.unwrap();
                env.disk.sync_folder("").await.unwrap();
                file.write_at(0, Bytes::from(vec![1; 2000])).await.unwrap();
                file.sync_data().await.unwrap();
                file.write_at(1000, Bytes::from(vec![2; 2000])).await.unwrap();
            });
            world.run(|env, _| async move {
                let file = env.disk.open("f", OpenMode::Read).await.unwrap();
                assert_eq!(file.read_at(0, 1000).await.unwrap(), vec![1; 1000]);
            });
            lost += u32::from(world.disk.files()[0].1 < 3000);
        }
        assert!((5..45).contains(&lost), "{lost} of 50 unsynced writes were lost");
    }

    #[test]
    fn a_write_without_space_may_be_done_in_part() {
        let mut parts = Vec::new();
        for seed in 0..50 {
            let world = World::new(seed);
            let disk = world.disk.clone();
            let written = world.run(|env, _| async move {
                let file = env.disk.open("f", OpenMode::CreateNew).await.unwrap();
                file.write_at(0, Bytes::from(vec![1; 2000])).await.unwrap();
                disk.set_free_bytes(Some(1000));
                let refused = file.write_at(1000, Bytes::from(vec![2; 3000])).await.unwrap_err();
                assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
                let twos = file.read_at(1000, file.size().await.unwrap() as usize - 1000).await.unwrap();
                twos.iter().filter(|byte| **byte == 2).count()
            });
            parts.push(written.unwrap());
        }
        assert!(parts.iter().all(|part| *part <= 2000), "{parts:?}");
        for expected in [0..1, 1..1000, 1000..2000, 2000..2001] {
            assert!(parts.iter().any(|part| expected.contains(part)), "none in {expected:?}: {parts:?}");
        }
    }

    #[test]
    fn a_killed_process_leaves_what_it_wrote_to_the_next_power_loss() {
        let mut lost = 0;
        for seed in 0..50 {
            let world = World::new(seed);
            let disk = world.disk.clone();
            let ended = world.run_until_killed(|env, _| async move {
                let file = env.disk.open("f", OpenMode::CreateNew).await.unwrap();
                env.disk.sync_folder("").await.unwrap();
                file.write_at(0, Bytes::from(vec![1; 2000])).await.unwrap();
                disk.crash();
                file.sync_data().await.unwrap();
            });
            assert_eq!(ended, None);
            world.run(|env, _| async move {
                let file = env.disk.open("f", OpenMode::Read).await.unwrap();
                assert_eq!(file.read_at(0, 2000).await.unwrap(), vec![1; 2000]);
            });
            lost += u32::from(world.disk.contents()["f"] != vec![1; 2000]);
        }
        assert!((5..45).contains(&lost), "{lost} of 50 unsynced writes were lost");
    }

    #[test]
    fn a_crash_stops_the_life_at_the_chosen_operation() {
        let world = World::new(1);
        world.disk.set_faults(crate::Faults { crash_at_operation: 3, ..Default::default() });
        let disk = world.disk.clone();
        let outcome = world.run(|_, _| async move {
            for index in 0..10 {
                disk.open(&format!("f{index}"), OpenMode::CreateNew).await.unwrap();
            }
        });
        assert_eq!(outcome, None);
        assert_eq!(world.disk.operation_count(), 3);
    }
}
