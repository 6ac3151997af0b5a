//! Space that is kept back for a full disk: a file, the reserve, that is given up when a write finds no
//! space.
//!
//! Why: a deletion on a full disk needs space first, for its log and for the checkpoint, compaction or copy
//! that reclaims space. What always holds: only a write that was refused for want of space has the reserve
//! given up; from then on space is scarce, also after a restart, and the layer above should request only what
//! reclaims space; space is no longer scarce once the whole reserve is there again. A small part of the
//! reserve is given up only by a start, which has to write before anything can be deleted.
//!
//! Space is scarce, too, while less than half of a reserve's size is free besides: then the reserve stays,
//! and work that reclaims space uses those bytes first. So a disk that is filled, emptied and filled again
//! does not cost the reserve, which would have to be written anew each time before requests are served.
//!
//! ```text
//! reserve       noise, so that no file system stores it in less; only its size counts:
//!               whole: kept back; less: given up, and perhaps being made again
//! reserve.new   being made for the first time; a start removes it
//! ```
//!
//! A folder on a disk that never had space for the reserve has no such file: there, too, space is scarce once
//! a write was refused, and until there is space for a reserve.

mod choices;
mod claim;
mod reserve;
mod task;
#[cfg(test)]
mod tests;

pub use claim::Claim;

use crate::settings::{START_RESERVE_SIZE_BYTES, StreamSettings};
use base::{Disk, DiskFile, Environment, OpenMode, Random};
use choices::{LOW_DIVISOR, LOW_MARGIN_DIVISOR, MARGIN_DIVISOR, SMALL_PART_DIVISOR, has_space};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Mutex, Notify, watch};

pub(crate) const RESERVE_PATH: &str = "reserve";
pub(crate) const RESERVE_NEW_PATH: &str = "reserve.new";
/// The start's part of a reserve, at most.
const START_DIVISOR: u64 = 8;
/// With less free than so many reserves space will soon be scarce: dead bytes are reclaimed earlier than
/// usual.
const TIGHT_RESERVE_COUNT: u64 = 4;

/// The reserve of a data folder.
pub(crate) struct Space {
    disk: Arc<dyn Disk>,
    random: Arc<dyn Random>,
    sizes: Sizes,
    reserve: Mutex<Reserve>,
    condition: Condition,
    measurement: Measurement,
    /// Bytes that work under way has claimed.
    claimed_bytes: Arc<AtomicU64>,
    /// Notified when space becomes scarce.
    became_scarce: Notify,
    /// Wakes the task when space becomes scarce.
    look_again: Notify,
    closing: watch::Sender<bool>,
}

/// The reserve's file and its bytes.
#[derive(Default)]
struct Reserve {
    file: Option<Arc<dyn DiskFile>>,
    held_bytes: u64,
    /// The file is not used any more until the next start.
    failed: bool,
}

/// Sizes that follow from the settings.
struct Sizes {
    /// Of the whole reserve; 0: there is none.
    whole_bytes: u64,
    /// The part of the reserve that only a start gives up.
    start_bytes: u64,
    /// With less free, deletions wait while space is scarce.
    floor_bytes: u64,
    /// What a flush may need; no other work claims it.
    flush_bytes: u64,
}

/// The reserve's condition. Writers read it without a lock: they must not wait for a piece that is being
/// synced.
#[derive(Default)]
struct Condition {
    /// The reserve was whole once, and has its name.
    is_named: AtomicBool,
    /// The reserve was given up and is not whole again.
    is_given_up: AtomicBool,
    /// The reserve is whole, and little is free besides.
    is_low: AtomicBool,
    /// How often the reserve was given up.
    given_up_count: AtomicU64,
}

/// What was measured last.
struct Measurement {
    free_bytes: AtomicU64,
    /// Of the reserve.
    held_bytes: AtomicU64,
}

impl Space {
    /// The reserve as the folder has it.
    pub(crate) async fn open(env: &Environment, settings: &StreamSettings) -> io::Result<Arc<Self>> {
        let mut reserve = Reserve::default();
        let condition = Condition::default();
        if env.disk.exists(RESERVE_NEW_PATH).await? {
            env.disk.remove(RESERVE_NEW_PATH).await?;
        }
        if settings.reserve_size_bytes > 0 && env.disk.exists(RESERVE_PATH).await? {
            let file = env.disk.open(RESERVE_PATH, OpenMode::Write).await?;
            reserve.held_bytes = file.size().await?.min(settings.reserve_size_bytes);
            reserve.file = Some(file);
            let is_given_up = reserve.held_bytes < settings.reserve_size_bytes;
            condition.is_named.store(true, Ordering::Relaxed);
            condition.is_given_up.store(is_given_up, Ordering::Relaxed);
        }
        Ok(Arc::new(Space {
            disk: env.disk.clone(),
            random: env.random.clone(),
            sizes: Sizes {
                whole_bytes: settings.reserve_size_bytes,
                start_bytes: START_RESERVE_SIZE_BYTES.min(settings.reserve_size_bytes / START_DIVISOR),
                floor_bytes: settings.floor_size_bytes(),
                flush_bytes: settings.flush_size_bytes_max.min(settings.reserve_size_bytes / START_DIVISOR),
            },
            reserve: Mutex::new(reserve),
            condition,
            measurement: Measurement { free_bytes: AtomicU64::new(u64::MAX), held_bytes: AtomicU64::new(0) },
            claimed_bytes: Arc::default(),
            became_scarce: Notify::new(),
            look_again: Notify::new(),
            closing: watch::Sender::new(false),
        }))
    }

    /// Whether the reserve was given up and is not there again.
    pub(crate) fn is_given_up(&self) -> bool {
        self.condition.is_given_up.load(Ordering::Relaxed)
    }

    /// Whether the disk is full or nearly so: only what reclaims space should be accepted.
    pub(crate) fn is_scarce(&self) -> bool {
        // Without a reserve nothing is kept back, so nothing is low.
        self.is_given_up() || self.condition.is_low.load(Ordering::Relaxed) && self.is_named()
    }

    /// Returns when space becomes scarce, or has become so since the last time.
    pub(crate) async fn became_scarce(&self) {
        self.became_scarce.notified().await;
    }

    /// Whether so little is free that work that takes space before it reclaims some must wait.
    pub(crate) fn is_below_floor(&self) -> bool {
        self.is_scarce() && self.measurement.free_bytes.load(Ordering::Relaxed) < self.sizes.floor_bytes
    }

    /// Whether space is scarce, or will soon be.
    pub(crate) async fn is_tight(&self) -> bool {
        if self.sizes.whole_bytes == 0 {
            return false;
        }
        let tight_bytes = TIGHT_RESERVE_COUNT * self.sizes.whole_bytes;
        self.is_scarce() || self.disk.free_bytes().await.is_ok_and(|free_bytes| free_bytes < tight_bytes)
    }

    /// Whether far more is free than is kept back, as measured last; no, if nothing was measured.
    pub(crate) fn is_ample(&self) -> bool {
        let free_bytes = self.measurement.free_bytes.load(Ordering::Relaxed);
        let ample_bytes = TIGHT_RESERVE_COUNT * self.sizes.whole_bytes;
        self.sizes.whole_bytes == 0
            || !self.is_scarce() && free_bytes != u64::MAX && free_bytes >= ample_bytes
    }

    /// Whether there is so little that a start should write nothing that can wait: the next start would not
    /// have the bytes that this one takes.
    pub(crate) async fn is_spent(&self) -> bool {
        if self.sizes.whole_bytes == 0 {
            return false;
        }
        self.is_scarce()
            || self.disk.free_bytes().await.is_ok_and(|free_bytes| free_bytes < self.sizes.start_bytes)
    }

    /// Bytes that must become free before writes are accepted again.
    pub(crate) fn missing_bytes(&self) -> u64 {
        if !self.is_scarce() {
            return 0;
        }
        let wanted_bytes = self.sizes.whole_bytes
            + self.sizes.whole_bytes / LOW_DIVISOR
            + self.sizes.whole_bytes / LOW_MARGIN_DIVISOR;
        let held_bytes = self.measurement.held_bytes.load(Ordering::Relaxed);
        wanted_bytes
            .saturating_sub(held_bytes)
            .saturating_sub(self.measurement.free_bytes.load(Ordering::Relaxed))
    }

    /// Claims space for work that reclaims more in the end: `wanted_bytes` or, with less free, as many as
    /// there are but not fewer than `least_bytes`. A flush always has space besides.
    pub(crate) async fn claim(&self, wanted_bytes: u64, least_bytes: u64) -> Option<Claim> {
        let claim = self.claim_of(wanted_bytes, least_bytes, 0).await;
        if claim.is_some() || self.is_given_up() || !self.condition.is_low.load(Ordering::Relaxed) {
            return claim;
        }
        // The reserve is kept for this, if it is enough.
        let given_bytes = self.sizes.whole_bytes.saturating_sub(self.sizes.start_bytes);
        drop(self.claim_of(wanted_bytes, least_bytes, given_bytes).await?);
        self.give_up(self.given_up()).await;
        self.claim_of(wanted_bytes, least_bytes, 0).await
    }

    /// Claims a part of what is free and of `given_bytes` besides.
    async fn claim_of(&self, wanted_bytes: u64, least_bytes: u64, given_bytes: u64) -> Option<Claim> {
        let free_bytes = match self.sizes.whole_bytes {
            0 => u64::MAX,
            _ => self.disk.free_bytes().await.unwrap_or(0).saturating_add(given_bytes),
        };
        // While space isn't scarce the claimed work must not have the reserve given up.
        let kept_bytes = match self.is_scarce() || !self.is_named() {
            true => self.sizes.flush_bytes,
            false => self.sizes.whole_bytes / MARGIN_DIVISOR,
        };
        let claimed = |claimed_bytes| {
            let left_bytes = free_bytes.saturating_sub(claimed_bytes).saturating_sub(kept_bytes);
            let size_bytes = wanted_bytes.min(left_bytes);
            (size_bytes >= least_bytes).then_some(size_bytes)
        };
        let add = |claimed_bytes: u64| Some(claimed_bytes.saturating_add(claimed(claimed_bytes)?));
        let before = self.claimed_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).ok()?;
        Some(Claim { size_bytes: claimed(before)?, claimed_bytes: self.claimed_bytes.clone() })
    }

    fn is_named(&self) -> bool {
        self.condition.is_named.load(Ordering::Relaxed)
    }

    /// The reserve's bytes, unless it is given up.
    pub(crate) fn kept_back_bytes(&self) -> u64 {
        if self.is_named() && !self.is_scarce() { self.sizes.whole_bytes } else { 0 }
    }

    /// Whether so many bytes are a small part of what is free.
    pub(crate) async fn has_plenty_of_room_for(&self, size_bytes: u64) -> bool {
        let free_bytes = self.disk.free_bytes().await;
        free_bytes.is_ok_and(|free_bytes| size_bytes <= free_bytes / SMALL_PART_DIVISOR)
    }

    /// See [`has_space`].
    pub(crate) async fn has_room_for(&self, size_bytes: u64) -> bool {
        // Without a reserve there is none to be lost. A file system that reports no useful free space has
        // none.
        if !self.is_named() && !self.is_scarce() {
            return true;
        }
        match self.disk.free_bytes().await {
            Ok(free_bytes) => {
                let free_bytes = free_bytes.saturating_sub(self.claimed_bytes.load(Ordering::Acquire));
                // The reserve counts: it is given up as soon as the rest is not enough.
                let is_kept = self.is_scarce() && !self.is_given_up();
                let given_bytes = if is_kept { self.sizes.whole_bytes - self.sizes.start_bytes } else { 0 };
                let free_bytes = free_bytes.saturating_add(given_bytes);
                has_space(self.is_scarce(), free_bytes, size_bytes, self.sizes.whole_bytes / MARGIN_DIVISOR)
            }
            Err(_) => !self.is_scarce(),
        }
    }

    /// How often the reserve was given up: a writer reads it before a write and passes it to
    /// [`Self::give_up`] if the write finds no space.
    pub(crate) fn given_up(&self) -> u64 {
        self.condition.given_up_count.load(Ordering::Acquire)
    }

    /// Receives the request to close; made before the task starts, so that closing waits for it.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Ends the task and returns once it has ended.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        self.closing.closed().await;
    }
}
