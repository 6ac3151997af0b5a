//! How far the replays of a range's streams are: for people, who wait for a take-over.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the replays that were begun, added up. Those of streams whose replay has not begun are in
/// neither.
#[derive(Debug, Default)]
pub struct ReplayProgress {
    begun_bytes: AtomicU64,
    read_bytes: AtomicU64,
}

impl ReplayProgress {
    /// A replay of so many bytes begins.
    pub(super) fn note_begun(&self, bytes: u64) {
        self.begun_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many bytes more were read.
    pub(super) fn note_read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that were read, and those that the replays begun so far have.
    pub fn read_of_begun(&self) -> (u64, u64) {
        let read = self.read_bytes.load(Ordering::Relaxed);
        // What was appended to an open extent since its replay began is read, too.
        (read, self.begun_bytes.load(Ordering::Relaxed).max(read))
    }
}
