//! Space that is kept back for a full disk: a file that is given up when a write finds no space.
//!
//! Why: whoever wants to delete on a full disk needs space first, for the log of the deletion and for the checkpoint, merge
//! or copy that gives space back. What always holds: only a write that was refused for want of space has the reserve given
//! up; from then on space is scarce, also after a restart, and only what gives space back should be asked of this layer,
//! which is the layer above's to see to; space is no longer scarce once the whole reserve is there again.
//!
//! ```text
//! reserve       noise, so that no file system stores it in less; its size is all that counts:
//!               whole: kept back; less: given up, and perhaps being made again
//! reserve.new   being made for the first time; what a start finds of it is removed
//! ```
//!
//! A folder on a disk that never had room for it has no such file, and there space is never scarce: writes are refused
//! when the disk is full, deletions as well.

use crate::settings::StreamSettings;
use base::random::splitmix64;
use base::{Clock, Disk, DiskFile, Environment, OpenMode, Random};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, watch};

pub(crate) const RESERVE_PATH: &str = "reserve";
pub(crate) const RESERVE_NEW_PATH: &str = "reserve.new";
/// A reserve that is not whole is looked after this often.
const WATCH_EVERY: Duration = Duration::from_secs(5);
/// It is written in pieces of this size, with a pause after each: others want the disk, too.
const PIECE_SIZE_BYTES: u64 = 1 << 20;
const PIECE_PAUSE: Duration = Duration::from_millis(10);
/// It is only made while this part of its size stays free besides; else the next write would have it given up again.
const MARGIN_DIVISOR: u64 = 4;

/// Up to this part of what is free is little.
const SMALL_PART_DIVISOR: u64 = 8;

/// The reserve of a data folder.
pub(crate) struct Space {
    disk: Arc<dyn Disk>,
    random: Arc<dyn Random>,
    /// Of the whole reserve; 0: there is none.
    size_bytes: u64,
    reserve: Mutex<Reserve>,
    /// It was whole once, and has its name. Asked by writers, who must not wait for a piece that is being synced.
    named: AtomicBool,
    scarce: AtomicBool,
    /// How often it was given up.
    given_up: AtomicU64,
    closing: watch::Sender<bool>,
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
fn choose_step(held_bytes: u64, size_bytes: u64, free_bytes: u64) -> Step {
    let missing_bytes = size_bytes.saturating_sub(held_bytes);
    let margin_bytes = size_bytes / MARGIN_DIVISOR;
    if missing_bytes == 0 || free_bytes < missing_bytes + margin_bytes {
        return Step::Rest;
    }
    Step::Grow(missing_bytes.min(PIECE_SIZE_BYTES))
}

/// Whether there is room for work that gives space back but takes so many bytes first. While space is scarce half of what
/// is free stays for others: a large merge that fails for want of space would have kept it from all deletions meanwhile.
/// Else a margin does, or such work would fill the disk, and the reserve would be given up for it again and again; but what
/// takes a small part of what is free is in nobody's way: rows that are nearly all dead would stay for ever.
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
        let mut scarce = false;
        if env.disk.exists(RESERVE_NEW_PATH).await? {
            env.disk.remove(RESERVE_NEW_PATH).await?;
        }
        if settings.reserve_size_bytes > 0 && env.disk.exists(RESERVE_PATH).await? {
            let file = env.disk.open(RESERVE_PATH, OpenMode::Write).await?;
            reserve.held_bytes = file.size().await?.min(settings.reserve_size_bytes);
            reserve.file = Some(file);
            named = true;
            scarce = reserve.held_bytes < settings.reserve_size_bytes;
        }
        Ok(Arc::new(Space {
            disk: env.disk.clone(),
            random: env.random.clone(),
            size_bytes: settings.reserve_size_bytes,
            reserve: Mutex::new(reserve),
            named: AtomicBool::new(named),
            scarce: AtomicBool::new(scarce),
            given_up: AtomicU64::new(0),
            closing: watch::Sender::new(false),
        }))
    }

    /// Whether the reserve was given up and is not there again.
    pub(crate) fn is_scarce(&self) -> bool {
        self.scarce.load(Ordering::Relaxed)
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
        // Without a reserve there is none to be lost; a file system that tells nothing useful of its space has none.
        if !self.is_named() {
            return true;
        }
        match self.disk.free_bytes().await {
            Ok(free_bytes) => {
                has_room(self.is_scarce(), free_bytes, size_bytes, self.size_bytes / MARGIN_DIVISOR)
            }
            Err(_) => !self.is_scarce(),
        }
    }

    /// How often the reserve was given up: to be asked before a write, and told if that finds no space.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Acquire)
    }

    /// A write found no space that began when the reserve had been given up `seen` times. True: there may be space now.
    pub(crate) async fn give_up(&self, seen: u64) -> bool {
        let mut reserve = self.reserve.lock().await;
        if self.given_up() != seen {
            return true;
        }
        let Some(file) = reserve.file.clone().filter(|_| reserve.held_bytes > 0 && !reserve.failed) else {
            return false;
        };
        // One that was never whole is no reserve yet: its space goes back, and nothing is refused for it.
        if self.is_named() {
            self.scarce.store(true, Ordering::Relaxed);
            tracing::warn!(
                reserve_bytes = reserve.held_bytes,
                "the disk is full: its reserve is given up, and until there is space only what gives some back is taken"
            );
        }
        reserve.held_bytes = 0;
        let emptied = async {
            file.set_len(0).await?;
            file.sync_data().await
        };
        if let Err(error) = emptied.await {
            self.fail(&mut reserve, &error).await;
            return false;
        }
        self.given_up.fetch_add(1, Ordering::Release);
        true
    }

    /// The file can't be used: as if there were none. One that was never whole gives back what it has; if it can't even do
    /// that, the next start does.
    async fn fail(&self, reserve: &mut Reserve, error: &io::Error) {
        tracing::warn!(%error, "the reserve for a full disk can't be used");
        reserve.failed = true;
        self.scarce.store(false, Ordering::Relaxed);
        if !self.is_named() {
            reserve.file = None;
            // The last step may have given it its name.
            for path in [RESERVE_NEW_PATH, RESERVE_PATH] {
                let _ = self.disk.remove(path).await;
            }
        }
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
        let mut pause_for = if self.is_scarce() { Duration::ZERO } else { WATCH_EVERY };
        loop {
            tokio::select! {
                biased;
                // An error would mean that nobody is left to end it.
                _ = closing.wait_for(|closing| *closing) => return,
                () = clock.sleep(pause_for) => {}
            }
            pause_for = if self.grow().await { PIECE_PAUSE } else { WATCH_EVERY };
        }
    }

    /// Makes a piece of the reserve, if there is space. False: there is nothing more to do for now.
    async fn grow(&self) -> bool {
        let mut reserve = self.reserve.lock().await;
        if reserve.failed || reserve.held_bytes >= self.size_bytes {
            return false;
        }
        let free_bytes = self.disk.free_bytes().await.unwrap_or(0);
        let Step::Grow(size_bytes) = choose_step(reserve.held_bytes, self.size_bytes, free_bytes) else {
            return false;
        };
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
        if is_whole && self.scarce.swap(false, Ordering::Relaxed) {
            tracing::warn!("the disk has space again: its reserve is there, and all writes are taken");
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
            assert_eq!(choose_step(held, size, free), expected, "{held} of {size}, {free} free");
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
