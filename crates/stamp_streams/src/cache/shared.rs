//! What the cache and its writer share.

use crate::cache::index::Index;
use crate::cache::record::BlockKey;
use base::{Clock, Disk, DiskFile};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::Notify;

/// How names of files begin; a number follows.
pub(super) const FILE_PREFIX: &str = "blocks-";

#[derive(Default)]
pub(super) struct Counts {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) damaged: AtomicU64,
    pub(super) not_kept: AtomicU64,
}

/// Blocks that wait to be written.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) blocks: Vec<(BlockKey, Bytes)>,
    pub(super) size_bytes: u64,
    pub(super) is_closing: bool,
}

/// Of one cache.
pub(super) struct Shared {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) index: Mutex<Index>,
    /// Of the files in the index.
    pub(super) files: Mutex<BTreeMap<u64, Arc<dyn DiskFile>>>,
    pub(super) waiting: Mutex<Waiting>,
    pub(super) changed: Notify,
    pub(super) has_ended: Notify,
    pub(super) counts: Counts,
}

impl Shared {
    pub(super) fn take_waiting(&self) -> Waiting {
        let mut waiting = self.waiting.lock();
        let is_closing = waiting.is_closing;
        std::mem::replace(&mut *waiting, Waiting { is_closing, ..Waiting::default() })
    }
}

pub(super) fn file_name(number: u64) -> String {
    format!("{FILE_PREFIX}{number:016x}")
}
