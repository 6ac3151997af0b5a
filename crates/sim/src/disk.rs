//! A disk that keeps exactly what it must, and lies where a real one may.
//!
//! Written bytes are visible at once, and stay so when only the process ends. What survives a power loss is
//! what was synced, plus any part of the rest: each unsynced write is kept, dropped, or torn at 512-byte
//! sectors; unsynced names are kept up to a random point. A sync can fail, and then what it covered may be
//! lost even if a later sync succeeds. Bits can be flipped, space (a write may then be done in part) and file
//! descriptors can run out, and the disk can die at a chosen operation.

mod content;
mod faults;
mod file;
mod folder_operations;
#[cfg(test)]
mod tests;
mod tree;

use crate::random::SimRandom;
use base::checksum::crc64;
pub use faults::Faults;

use content::Content;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tree::{Tree, set_names};

/// The simulated disk. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    tree: Arc<Mutex<Tree>>,
    random: SimRandom,
    /// Whether the disk is dead.
    crash: Arc<watch::Sender<bool>>,
}

impl SimDisk {
    pub(crate) fn new(random: SimRandom) -> Self {
        SimDisk { tree: Arc::default(), random, crash: Arc::new(watch::Sender::new(false)) }
    }

    /// Sets how the disk misbehaves from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.tree.lock().faults = faults;
    }

    /// Leaves space for `free_bytes` more from now on; `None` is no limit.
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
