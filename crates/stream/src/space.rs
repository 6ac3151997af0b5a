//! Space that is kept back for a full disk: a file that is given up when a write finds no space.
//!
//! Why: whoever wants to delete on a full disk needs space first, for the log of the deletion and for the
//! checkpoint, merge or copy that gives space back. What always holds: only a write that was refused for want
//! of space has the reserve given up; from then on space is scarce, also after a restart, and only what gives
//! space back should be asked of this layer, which is the layer above's to see to; space is no longer scarce
//! once the whole reserve is there again. A small part of it is given up by a start only, which has to write
//! before anything can be deleted.
//!
//! Space is scarce, too, while less than half of a reserve's size is free besides: there the reserve stays,
//! and what gives space back has that room first. So a disk that its users fill, delete from and fill again
//! does not cost the reserve, which would have to be written anew each time before anybody is served.
//!
//! ```text
//! reserve       noise, so that no file system stores it in less; its size is all that counts:
//!               whole: kept back; less: given up, and perhaps being made again
//! reserve.new   being made for the first time; what a start finds of it is removed
//! ```
//!
//! A folder on a disk that never had room for it has no such file: there, too, space is scarce once a write
//! was refused, and until there is room for a reserve.

use crate::settings::{START_RESERVE_SIZE_BYTES, StreamSettings};
use base::random::splitmix64;
use base::{Clock, Disk, DiskFile, Environment, OpenMode, Random};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify, watch};

pub(crate) const RESERVE_PATH: &str = "reserve";
pub(crate) const RESERVE_NEW_PATH: &str = "reserve.new";
/// A reserve that is not whole is looked after this often.
const WATCH_EVERY: Duration = Duration::from_secs(5);
/// While space is scarce, this often: deletions wait for what comes back.
const SCARCE_WATCH_EVERY: Duration = Duration::from_millis(100);
/// It is written in pieces of this size, with a pause after each: others want the disk, too.
const PIECE_SIZE_BYTES: u64 = 1 << 20;
const PIECE_PAUSE: Duration = Duration::from_millis(10);
/// It is only made while this part of its size stays free besides; else the next write would have it given up
/// again.
const MARGIN_DIVISOR: u64 = 4;
/// And by this part more than the floor, or it would be given up for deletions at once.
const FLOOR_MARGIN_DIVISOR: u64 = 4;
/// The start's part of a reserve, at most.
const START_DIVISOR: u64 = 8;
/// Less than so many times the reserve is free: what is dead is worth more than usual.
const TIGHT_RESERVE_COUNT: u64 = 4;

/// With less free than this part of the reserve the disk is nearly full.
const LOW_DIVISOR: u64 = 2;
/// And no longer so once this part of the reserve more is free.
const LOW_MARGIN_DIVISOR: u64 = 32;
/// What is free is looked at again before it can have been filled at this speed,
const FILLED_BYTES_PER_SECOND_MAX: u64 = 2 << 30;
/// but not sooner than after this.
const LOW_WATCH_EVERY: Duration = Duration::from_millis(20);

/// Up to this part of what is free is little.
const SMALL_PART_DIVISOR: u64 = 8;

/// The reserve of a data folder.
pub(crate) struct Space {
    disk: Arc<dyn Disk>,
    random: Arc<dyn Random>,
    /// Of the whole reserve; 0: there is none.
    size_bytes: u64,
    reserve: Mutex<Reserve>,
    /// It was whole once, and has its name. Asked by writers, who must not wait for a piece that is being
    /// synced.
    named: AtomicBool,
    /// The reserve was given up and is not whole again.
    is_given_up: AtomicBool,
    /// The reserve is whole, and little is free besides.
    is_low: AtomicBool,
    /// How often it was given up.
    given_up: AtomicU64,
    /// Of the reserve, what only a start gives up.
    start_bytes: u64,
    /// With less free, deletions wait while space is scarce.
    floor_bytes: u64,
    /// What a flush may need, which nobody else claims.
    flush_bytes: u64,
    /// What was free when it was looked at last.
    free_bytes_seen: AtomicU64,
    /// And what was held of the reserve.
    held_bytes_seen: AtomicU64,
    /// Bytes that work which is under way has claimed.
    claimed_bytes: Arc<AtomicU64>,
    /// Told when space becomes scarce.
    became_scarce: Notify,
    /// Tells the task of it.
    look_again: Notify,
    closing: watch::Sender<bool>,
}

/// Space that somebody may fill, until it is dropped.
pub struct Claim {
    size_bytes: u64,
    claimed_bytes: Arc<AtomicU64>,
}

impl Claim {
    /// So many bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claimed_bytes.fetch_sub(self.size_bytes, Ordering::AcqRel);
    }
}

/// What there is of the file.
#[derive(Default)]
struct Reserve {
    file: Option<Arc<dyn DiskFile>>,
    held_bytes: u64,
    /// Nothing more is tried with the file until the next start.
    failed: bool,
}

/// What to do about a reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing.
    Rest,
    /// So many bytes more.
    Grow(u64),
}

/// What is done about a reserve of which so much is held, on a disk with so much free.
fn choose_step(held_bytes: u64, size_bytes: u64, free_bytes: u64, margin_bytes: u64) -> Step {
    let missing_bytes = size_bytes.saturating_sub(held_bytes);
    if missing_bytes == 0 || free_bytes < missing_bytes + margin_bytes {
        return Step::Rest;
    }
    Step::Grow(missing_bytes.min(PIECE_SIZE_BYTES))
}

/// Whether so much is little, with a reserve of that size.
fn is_little(was_little: bool, free_bytes: u64, size_bytes: u64) -> bool {
    let margin_bytes = if was_little { size_bytes / LOW_MARGIN_DIVISOR } else { 0 };
    free_bytes < size_bytes / LOW_DIVISOR + margin_bytes
}

/// When to look again at a disk of which so much is free.
fn look_again_after(free_bytes: u64, size_bytes: u64) -> Duration {
    let left_bytes = free_bytes.saturating_sub(size_bytes / LOW_DIVISOR);
    let filled_after = Duration::from_secs_f64(left_bytes as f64 / FILLED_BYTES_PER_SECOND_MAX as f64);
    filled_after.clamp(LOW_WATCH_EVERY, WATCH_EVERY)
}

/// Whether there is room for work that gives space back but takes so many bytes first. While space is scarce
/// half of what is free stays for others: a large merge that fails for want of space would have kept it from
/// all deletions meanwhile. Else a margin does, or such work would fill the disk, and the reserve would be
/// given up for it again and again; but what takes a small part of what is free is in nobody's way: rows that
/// are nearly all dead would stay for ever.
fn has_room(is_scarce: bool, free_bytes: u64, size_bytes: u64, margin_bytes: u64) -> bool {
    if is_scarce {
        size_bytes <= free_bytes / 2
    } else {
        size_bytes <= free_bytes / SMALL_PART_DIVISOR || size_bytes.saturating_add(margin_bytes) <= free_bytes
    }
}

impl Space {
    /// Looks at what the folder has.
    pub(crate) async fn open(env: &Environment, settings: &StreamSettings) -> io::Result<Arc<Self>> {
        let mut reserve = Reserve::default();
        let mut named = false;
        let mut is_given_up = false;
        if env.disk.exists(RESERVE_NEW_PATH).await? {
            env.disk.remove(RESERVE_NEW_PATH).await?;
        }
        if settings.reserve_size_bytes > 0 && env.disk.exists(RESERVE_PATH).await? {
            let file = env.disk.open(RESERVE_PATH, OpenMode::Write).await?;
            reserve.held_bytes = file.size().await?.min(settings.reserve_size_bytes);
            reserve.file = Some(file);
            named = true;
            is_given_up = reserve.held_bytes < settings.reserve_size_bytes;
        }
        Ok(Arc::new(Space {
            disk: env.disk.clone(),
            random: env.random.clone(),
            size_bytes: settings.reserve_size_bytes,
            reserve: Mutex::new(reserve),
            named: AtomicBool::new(named),
            is_given_up: AtomicBool::new(is_given_up),
            is_low: AtomicBool::new(false),
            given_up: AtomicU64::new(0),
            start_bytes: START_RESERVE_SIZE_BYTES.min(settings.reserve_size_bytes / START_DIVISOR),
            floor_bytes: settings.floor_size_bytes(),
            flush_bytes: settings.flush_size_bytes_max.min(settings.reserve_size_bytes / START_DIVISOR),
            free_bytes_seen: AtomicU64::new(u64::MAX),
            held_bytes_seen: AtomicU64::new(0),
            claimed_bytes: Arc::default(),
            became_scarce: Notify::new(),
            look_again: Notify::new(),
            closing: watch::Sender::new(false),
        }))
    }

    /// Whether the reserve was given up and is not there again.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// Whether the disk is full or nearly so: only what gives space back is to be taken.
    pub(crate) fn is_scarce(&self) -> bool {
        // Without a reserve nothing is kept back, so nothing is low.
        self.is_given_up() || self.is_low.load(Ordering::Relaxed) && self.is_named()
    }

    /// Returns when space becomes scarce, or has become so since the last time.
    pub(crate) async fn became_scarce(&self) {
        self.became_scarce.notified().await;
    }

    /// Whether so little is free that what takes space before it gives some back must wait.
    pub(crate) fn is_below_floor(&self) -> bool {
        self.is_scarce() && self.free_bytes_seen.load(Ordering::Relaxed) < self.floor_bytes
    }

    /// Whether space is scarce, or will soon be.
    pub(crate) async fn is_tight(&self) -> bool {
        if self.size_bytes == 0 {
            return false;
        }
        let tight_bytes = TIGHT_RESERVE_COUNT * self.size_bytes;
        self.is_scarce() || self.disk.free_bytes().await.is_ok_and(|free_bytes| free_bytes < tight_bytes)
    }

    /// Whether there is so little that a start should write nothing that can wait: what it takes the next one
    /// would not find.
    pub(crate) async fn is_spent(&self) -> bool {
        if self.size_bytes == 0 {
            return false;
        }
        self.is_scarce() || self.disk.free_bytes().await.is_ok_and(|free_bytes| free_bytes < self.start_bytes)
    }

    /// What is missing until writes are taken again.
    pub(crate) fn missing_bytes(&self) -> u64 {
        if !self.is_scarce() {
            return 0;
        }
        let wanted_bytes =
            self.size_bytes + self.size_bytes / LOW_DIVISOR + self.size_bytes / LOW_MARGIN_DIVISOR;
        let held_bytes = self.held_bytes_seen.load(Ordering::Relaxed);
        wanted_bytes.saturating_sub(held_bytes).saturating_sub(self.free_bytes_seen.load(Ordering::Relaxed))
    }

    /// Claims space for work that gives some back in the end: `wanted` bytes or, with less free, as many as
    /// there are but not fewer than `least`. A flush always has room besides.
    pub(crate) async fn claim(&self, wanted_bytes: u64, least_bytes: u64) -> Option<Claim> {
        let claim = self.claim_of(wanted_bytes, least_bytes, 0).await;
        if claim.is_some() || self.is_given_up() || !self.is_low.load(Ordering::Relaxed) {
            return claim;
        }
        // This is what the reserve is kept for, if it is enough.
        let given_bytes = self.size_bytes.saturating_sub(self.start_bytes);
        drop(self.claim_of(wanted_bytes, least_bytes, given_bytes).await?);
        self.give_up(self.given_up()).await;
        self.claim_of(wanted_bytes, least_bytes, 0).await
    }

    /// Claims a part of what is free and of `given_bytes` besides.
    async fn claim_of(&self, wanted_bytes: u64, least_bytes: u64, given_bytes: u64) -> Option<Claim> {
        let free_bytes = match self.size_bytes {
            0 => u64::MAX,
            _ => self.disk.free_bytes().await.unwrap_or(0).saturating_add(given_bytes),
        };
        // While space isn't scarce its work must not be what has the reserve given up.
        let kept_bytes = match self.is_scarce() || !self.is_named() {
            true => self.flush_bytes,
            false => self.size_bytes / MARGIN_DIVISOR,
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
        self.named.load(Ordering::Relaxed)
    }

    /// The reserve's bytes, unless it is given up.
    pub(crate) fn kept_back_bytes(&self) -> u64 {
        if self.is_named() && !self.is_scarce() { self.size_bytes } else { 0 }
    }

    /// Whether so many bytes are a small part of what is free.
    pub(crate) async fn has_plenty_of_room_for(&self, size_bytes: u64) -> bool {
        let free_bytes = self.disk.free_bytes().await;
        free_bytes.is_ok_and(|free_bytes| size_bytes <= free_bytes / SMALL_PART_DIVISOR)
    }

    /// See [`has_room`].
    pub(crate) async fn has_room_for(&self, size_bytes: u64) -> bool {
        // Without a reserve there is none to be lost; a file system that tells nothing useful of its space
        // has none.
        if !self.is_named() && !self.is_scarce() {
            return true;
        }
        match self.disk.free_bytes().await {
            Ok(free_bytes) => {
                let free_bytes = free_bytes.saturating_sub(self.claimed_bytes.load(Ordering::Acquire));
                // The reserve is for this: it is given up as soon as the rest is not enough.
                let is_kept = self.is_scarce() && !self.is_given_up();
                let given_bytes = if is_kept { self.size_bytes - self.start_bytes } else { 0 };
                let free_bytes = free_bytes.saturating_add(given_bytes);
                has_room(self.is_scarce(), free_bytes, size_bytes, self.size_bytes / MARGIN_DIVISOR)
            }
            Err(_) => !self.is_scarce(),
        }
    }

    /// How often the reserve was given up: to be asked before a write, and told if that finds no space.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Acquire)
    }

    /// A write found no space that began when the reserve had been given up `seen` times. True: there may be
    /// space now.
    pub(crate) async fn give_up(&self, seen: u64) -> bool {
        self.give_up_to(seen, self.start_bytes).await
    }

    /// The same for a start, which has a part of the reserve for itself.
    pub(crate) async fn give_up_at_start(&self, seen: u64) -> bool {
        self.give_up_to(seen, self.start_bytes).await || self.give_up_to(self.given_up(), 0).await
    }

    async fn give_up_to(&self, seen: u64, kept_bytes: u64) -> bool {
        let mut reserve = self.reserve.lock().await;
        if self.given_up() != seen {
            return true;
        }
        if self.size_bytes == 0 || reserve.failed {
            return false;
        }
        // One that was never whole is no reserve yet: all of its space goes back.
        let kept_bytes = if self.is_named() { kept_bytes } else { 0 };
        if !self.is_given_up.swap(true, Ordering::Relaxed) {
            let free_bytes = self.disk.free_bytes().await.unwrap_or(0);
            tracing::warn!(
                reserve_bytes = reserve.held_bytes,
                free_bytes,
                "the disk is full: its reserve is given up, and until there is space only what gives some back is taken"
            );
        }
        self.free_bytes_seen.store(0, Ordering::Relaxed);
        self.became_scarce.notify_one();
        self.look_again.notify_one();
        let Some(file) = reserve.file.clone().filter(|_| reserve.held_bytes > kept_bytes) else {
            return false;
        };
        reserve.held_bytes = kept_bytes;
        let emptied = async {
            file.set_len(kept_bytes).await?;
            file.sync_data().await
        };
        if let Err(error) = emptied.await {
            self.fail(&mut reserve, &error).await;
            return false;
        }
        self.given_up.fetch_add(1, Ordering::Release);
        true
    }

    /// The file can't be used: as if there were none. One that was never whole gives back what it has; if it
    /// can't even do that, the next start does.
    async fn fail(&self, reserve: &mut Reserve, error: &io::Error) {
        tracing::warn!(%error, "the reserve for a full disk can't be used");
        reserve.failed = true;
        self.is_given_up.store(false, Ordering::Relaxed);
        if !self.named.swap(false, Ordering::Relaxed) {
            reserve.file = None;
            // The last step may have given it its name.
            for path in [RESERVE_NEW_PATH, RESERVE_PATH] {
                let _ = self.disk.remove(path).await;
            }
        }
        self.is_low.store(false, Ordering::Relaxed);
    }

    /// Learns of the end; made before the task starts, so that closing waits for it.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Ends the task and returns once it has ended.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        self.closing.closed().await;
    }

    /// The task: makes the reserve, and makes it again after it was given up and there is space.
    pub(crate) async fn run(self: Arc<Self>, mut closing: watch::Receiver<bool>, clock: Arc<dyn Clock>) {
        // A folder that is used for a moment only should not have to pay for it.
        let mut pause_for = if self.is_named() { Duration::ZERO } else { WATCH_EVERY };
        loop {
            tokio::select! {
                biased;
                // An error would mean that nobody is left to end it.
                _ = closing.wait_for(|closing| *closing) => return,
                () = self.look_again.notified() => {}
                () = clock.sleep(pause_for) => {}
            }
            pause_for = self.watch().await;
        }
    }

    /// Looks after the reserve and what is free besides. Returns when to do so again.
    async fn watch(&self) -> Duration {
        if self.grow().await {
            return PIECE_PAUSE;
        }
        if self.is_given_up() {
            return SCARCE_WATCH_EVERY;
        }
        let Ok(free_bytes) = self.disk.free_bytes().await else { return WATCH_EVERY };
        if !self.is_named() {
            return WATCH_EVERY;
        }
        self.held_bytes_seen.store(self.size_bytes, Ordering::Relaxed);
        self.note_free(free_bytes);
        if free_bytes < self.floor_bytes {
            // Deletions must not wait for more while there is a reserve.
            self.give_up(self.given_up()).await;
            return SCARCE_WATCH_EVERY;
        }
        look_again_after(free_bytes, self.size_bytes)
    }

    /// Notes how much is free, and whether that is little.
    fn note_free(&self, free_bytes: u64) {
        self.free_bytes_seen.store(free_bytes, Ordering::Relaxed);
        let was_low = self.is_low.load(Ordering::Relaxed);
        let is_low = is_little(was_low, free_bytes, self.size_bytes);
        if is_low == was_low {
            return;
        }
        self.is_low.store(is_low, Ordering::Relaxed);
        if is_low {
            tracing::info!(
                free_bytes,
                "the disk is nearly full: until there is space only what gives some back is taken"
            );
            self.became_scarce.notify_one();
        } else {
            tracing::info!(free_bytes, "the disk has space again: all writes are taken");
        }
    }

    /// Makes a piece of the reserve, if there is space. False: there is nothing more to do for now.
    async fn grow(&self) -> bool {
        let mut reserve = self.reserve.lock().await;
        if reserve.failed || reserve.held_bytes >= self.size_bytes {
            return false;
        }
        let free_bytes = self.disk.free_bytes().await.unwrap_or(0);
        self.free_bytes_seen.store(free_bytes, Ordering::Relaxed);
        self.held_bytes_seen.store(reserve.held_bytes, Ordering::Relaxed);
        let margin_bytes = self.size_bytes / MARGIN_DIVISOR;
        let margin_bytes = margin_bytes.max(self.floor_bytes + self.floor_bytes / FLOOR_MARGIN_DIVISOR);
        // Whoever it was given up for has not filled it yet.
        let margin_bytes = margin_bytes + self.claimed_bytes.load(Ordering::Acquire);
        let step = choose_step(reserve.held_bytes, self.size_bytes, free_bytes, margin_bytes);
        let Step::Grow(size_bytes) = step else { return false };
        match self.write_piece(&mut reserve, size_bytes).await {
            Ok(()) => {}
            // Somebody else was faster, or may use less than what is free.
            Err(error) if crate::error::is_disk_full(&error) => return false,
            Err(error) => {
                self.fail(&mut reserve, &error).await;
                return false;
            }
        }
        let is_whole = reserve.held_bytes >= self.size_bytes;
        if is_whole
            && !self.is_named()
            && let Err(error) = self.name().await
        {
            self.fail(&mut reserve, &error).await;
            return false;
        }
        if is_whole {
            // Never a moment in which neither holds.
            self.held_bytes_seen.store(self.size_bytes, Ordering::Relaxed);
            if let Ok(free_bytes) = self.disk.free_bytes().await {
                self.note_free(free_bytes);
            }
            if self.is_given_up.swap(false, Ordering::Relaxed) {
                tracing::warn!(
                    is_nearly_full = self.is_scarce(),
                    "the disk has space again: its reserve is there"
                );
            }
        }
        !is_whole
    }

    async fn write_piece(&self, reserve: &mut Reserve, size_bytes: u64) -> io::Result<()> {
        let file = match &reserve.file {
            Some(file) => file.clone(),
            None => {
                let file = self.disk.open(RESERVE_NEW_PATH, OpenMode::CreateNew).await?;
                reserve.file = Some(file.clone());
                file
            }
        };
        let mut state = self.random.next_u64();
        let words = (0..size_bytes.div_ceil(8)).flat_map(|_| splitmix64(&mut state).to_le_bytes());
        let noise: Bytes = words.take(size_bytes as usize).collect();
        let written = async {
            file.write_at(reserve.held_bytes, noise).await?;
            // Space that a file system only promises is refused here.
            file.sync_data().await
        };
        if let Err(error) = written.await {
            // A part of it may be there, which nobody would give back.
            file.set_len(reserve.held_bytes).await?;
            return Err(error);
        }
        reserve.held_bytes += size_bytes;
        Ok(())
    }

    /// The whole reserve gets its name: from now on less of it means that it was given up.
    async fn name(&self) -> io::Result<()> {
        self.disk.rename(RESERVE_NEW_PATH, RESERVE_PATH).await?;
        self.disk.sync_folder("").await?;
        self.named.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_made_where_a_margin_stays_free() {
        const MIB: u64 = 1 << 20;
        for (held, size, free, expected) in [
            (0, 64 * MIB, u64::MAX, Step::Grow(MIB)),
            (0, 64 * MIB, 80 * MIB, Step::Grow(MIB)),
            (0, 64 * MIB, 80 * MIB - 1, Step::Rest),
            (63 * MIB, 64 * MIB, 17 * MIB, Step::Grow(MIB)),
            (63 * MIB, 64 * MIB, 17 * MIB - 1, Step::Rest),
            (64 * MIB - 5, 64 * MIB, u64::MAX, Step::Grow(5)),
            (64 * MIB, 64 * MIB, u64::MAX, Step::Rest),
            (65 * MIB, 64 * MIB, u64::MAX, Step::Rest),
            (0, 0, u64::MAX, Step::Rest),
        ] {
            assert_eq!(
                choose_step(held, size, free, size / MARGIN_DIVISOR),
                expected,
                "{held} of {size}, {free} free"
            );
        }
    }

    #[test]
    fn little_is_free_below_half_a_reserve_and_until_a_bit_more_is() {
        for (was_little, free, expected) in [
            (false, 319, true),
            (false, 320, false),
            (true, 320, true),
            (true, 339, true),
            (true, 340, false),
        ] {
            assert_eq!(is_little(was_little, free, 640), expected, "{was_little} {free}");
        }
    }

    #[test]
    fn a_disk_is_looked_at_before_it_can_be_full() {
        for (free, expected) in [
            (0, LOW_WATCH_EVERY),
            (32 << 20, LOW_WATCH_EVERY),
            ((32 << 20) + (2 << 30), Duration::from_secs(1)),
            (u64::MAX, WATCH_EVERY),
        ] {
            assert_eq!(look_again_after(free, 64 << 20), expected, "{free}");
        }
    }

    #[test]
    fn something_stays_for_others_and_half_of_what_is_free_while_space_is_scarce() {
        for (is_scarce, free, size, expected) in [
            (false, 100, 84, true),
            (false, 100, 85, false),
            (false, 0, u64::MAX, false),
            (false, 0, 0, true),
            (false, 16, 2, true),
            (false, 16, 3, false),
            (true, 100, 50, true),
            (true, 100, 51, false),
            (true, 0, 0, true),
            (true, 0, 1, false),
        ] {
            assert_eq!(has_room(is_scarce, free, size, 16), expected, "{is_scarce} {free} {size}");
        }
    }
}
