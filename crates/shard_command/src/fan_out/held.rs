//! How much the rows take that a question has in memory, of all shards together.
//!
//! What always holds: what is held is given up with its holder, whatever became of it; nothing is held beyond
//! the bound.

use shard_backend::BatchBounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the rows that are kept to be sorted, of all shards, at most.
pub(super) const SORTED_BYTES_MAX: usize = 256 << 20;
/// Bytes of the batches of all shards, at most, but for rows that are longer than a batch.
const BATCHES_BYTES_MAX: usize = 256 << 20;
/// Bytes of a batch, at least.
const BATCH_BYTES_MIN: usize = 16 << 10;

/// The bound, which all shards share.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    left: Arc<AtomicUsize>,
}

/// Part of it.
#[derive(Debug)]
pub(super) struct Held {
    memory: Memory,
    bytes: usize,
}

impl Memory {
    /// Of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Memory { left: Arc::new(AtomicUsize::new(bytes)) }
    }

    /// Nothing yet.
    pub(super) fn hold(&self) -> Held {
        Held { memory: self.clone(), bytes: 0 }
    }
}

impl Held {
    /// Holds so many more; whether there is room.
    pub(super) fn add(&mut self, bytes: usize) -> bool {
        let left = &self.memory.left;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        self.bytes += if taken.is_ok() { bytes } else { 0 };
        taken.is_ok()
    }

    /// Holds so many less.
    pub(super) fn remove(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.memory.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.remove(self.bytes);
    }
}

/// Bounds of a batch where so many shards have one each.
pub(super) fn batch_bounds(shards: usize) -> BatchBounds {
    let usual = BatchBounds::default();
    let bytes_max = (BATCHES_BYTES_MAX / shards.max(1)).clamp(BATCH_BYTES_MIN, usual.bytes_max);
    BatchBounds { bytes_max, ..usual }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard_map::SHARDS_MAX;

    /// Each of 128 shards kept 64 MiB, and each of 4,096 had a batch of 4 MiB.
    #[test]
    fn all_shards_share_the_bounds() {
        let memory = Memory::new(100);
        let (mut one, mut other) = (memory.hold(), memory.hold());
        assert!(one.add(60) && other.add(40) && !other.add(1));
        one.remove(10);
        assert!(other.add(10) && !one.add(1));
        drop(one);
        assert!(other.add(50) && !other.add(1));
        drop(other);
        assert!(memory.hold().add(100));
        for shards in [1, 64, 128, SHARDS_MAX] {
            assert!(batch_bounds(shards).bytes_max * shards <= BATCHES_BYTES_MAX, "{shards}");
        }
        assert_eq!(batch_bounds(3), BatchBounds::default());
    }
}
