//! How far a migration is.

use std::sync::atomic::{AtomicU64, Ordering};
use stream::StreamManifest;

/// What a migration is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MigrationPhase {
    /// Bytes are being copied.
    Copying,
    /// They are read again on both sides, and compared.
    Comparing,
}

/// How far a migration is: what it does, how many bytes of how many are done.
pub type MigrationProgress<'a> = dyn Fn(MigrationPhase, u64, u64) + Send + Sync + 'a;

/// Counts and shows progress.
pub(super) struct Report<'a> {
    show: &'a MigrationProgress<'a>,
    all: u64,
    /// Bytes that were there before.
    kept: AtomicU64,
    copied: AtomicU64,
    compared: AtomicU64,
    /// All work so far: it grows as long as there is progress.
    work: AtomicU64,
}

impl<'a> Report<'a> {
    pub(super) fn new(show: &'a MigrationProgress<'a>, manifest: &StreamManifest) -> Self {
        Report {
            show,
            all: manifest.size_bytes(),
            kept: AtomicU64::new(0),
            copied: AtomicU64::new(0),
            compared: AtomicU64::new(0),
            work: AtomicU64::new(0),
        }
    }

    /// So many bytes were there before.
    pub(super) fn keep(&self, bytes: u64) {
        self.kept.store(bytes, Ordering::Relaxed);
        self.copied(0);
    }

    pub(super) fn copied_bytes(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }

    pub(super) fn compared_bytes(&self) -> u64 {
        self.compared.load(Ordering::Relaxed)
    }

    pub(super) fn copied(&self, bytes: u64) {
        self.work.fetch_add(bytes, Ordering::Relaxed);
        let copied = self.copied.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let done = self.kept.load(Ordering::Relaxed) + copied;
        (self.show)(MigrationPhase::Copying, done.min(self.all), self.all);
    }

    pub(super) fn compared(&self, bytes: u64) {
        self.work.fetch_add(bytes, Ordering::Relaxed);
        let compared = self.compared.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.show)(MigrationPhase::Comparing, compared.min(self.all), self.all);
    }

    pub(super) fn all(&self) -> u64 {
        self.all
    }

    /// What was compared counts from the start again.
    pub(super) fn compare_anew(&self) {
        self.compared.store(0, Ordering::Relaxed);
    }

    pub(super) fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }
}
