//! The reserve's file: it grows piece by piece, is given up when a write finds no space, and gets its name
//! once it is whole.

use super::choices::{MARGIN_DIVISOR, Step, choose_step};
use super::{RESERVE_NEW_PATH, RESERVE_PATH, Reserve, Space};
use base::OpenMode;
use base::random::splitmix64;
use bytes::Bytes;
use std::io;
use std::sync::atomic::Ordering;

/// The reserve only grows while the floor and this part of it more stay free, or it would be given up for
/// deletions at once.
const FLOOR_MARGIN_DIVISOR: u64 = 4;

impl Space {
    /// Gives the reserve up for a write that found no space and began when the reserve had been given up
    /// `seen` times. True: there may be space now.
    pub(crate) async fn give_up(&self, seen: u64) -> bool {
        self.give_up_to(seen, self.sizes.start_bytes).await
    }

    /// The same for a start, which has a part of the reserve for itself.
    pub(crate) async fn give_up_at_start(&self, seen: u64) -> bool {
        self.give_up_to(seen, self.sizes.start_bytes).await || self.give_up_to(self.given_up(), 0).await
    }

    async fn give_up_to(&self, seen: u64, kept_bytes: u64) -> bool {
        let mut reserve = self.reserve.lock().await;
        if self.given_up() != seen {
            return true;
        }
        if self.sizes.whole_bytes == 0 || reserve.failed {
            return false;
        }
        // One that was never whole is no reserve yet: all of its space is freed.
        let kept_bytes = if self.is_named() { kept_bytes } else { 0 };
        if !self.condition.is_given_up.swap(true, Ordering::Relaxed) {
            let free_bytes = self.disk.free_bytes().await.unwrap_or(0);
            tracing::warn!(
                reserve_bytes = reserve.held_bytes,
                free_bytes,
                "the disk is full: its reserve is given up, and until there is space only what reclaims some is accepted"
            );
        }
        self.measurement.free_bytes.store(0, Ordering::Relaxed);
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
        self.condition.given_up_count.fetch_add(1, Ordering::Release);
        true
    }

    /// The file can't be used: as if there were none. One that was never whole is removed; where that fails,
    /// the next start removes it.
    async fn fail(&self, reserve: &mut Reserve, error: &io::Error) {
        tracing::warn!(%error, "the reserve for a full disk can't be used");
        reserve.failed = true;
        self.condition.is_given_up.store(false, Ordering::Relaxed);
        if !self.condition.is_named.swap(false, Ordering::Relaxed) {
            reserve.file = None;
            // The last step may have given it its name.
            for path in [RESERVE_NEW_PATH, RESERVE_PATH] {
                let _ = self.disk.remove(path).await;
            }
        }
        self.condition.is_low.store(false, Ordering::Relaxed);
    }

    /// Adds a piece to the reserve, if there is space. False: there is nothing more to do for now.
    pub(super) async fn grow(&self) -> bool {
        let mut reserve = self.reserve.lock().await;
        if reserve.failed || reserve.held_bytes >= self.sizes.whole_bytes {
            return false;
        }
        let free_bytes = self.disk.free_bytes().await.unwrap_or(0);
        self.measurement.free_bytes.store(free_bytes, Ordering::Relaxed);
        self.measurement.held_bytes.store(reserve.held_bytes, Ordering::Relaxed);
        let margin_bytes = self.sizes.whole_bytes / MARGIN_DIVISOR;
        let margin_bytes =
            margin_bytes.max(self.sizes.floor_bytes + self.sizes.floor_bytes / FLOOR_MARGIN_DIVISOR);
        // Claims are not filled yet.
        let margin_bytes = margin_bytes + self.claimed_bytes.load(Ordering::Acquire);
        let step = choose_step(reserve.held_bytes, self.sizes.whole_bytes, free_bytes, margin_bytes);
        let Step::Grow(size_bytes) = step else { return false };
        match self.write_piece(&mut reserve, size_bytes).await {
            Ok(()) => {}
            // Another write was faster, or this process may use less than what is free.
            Err(error) if crate::error::is_disk_full(&error) => return false,
            Err(error) => {
                self.fail(&mut reserve, &error).await;
                return false;
            }
        }
        let is_whole = reserve.held_bytes >= self.sizes.whole_bytes;
        if is_whole
            && !self.is_named()
            && let Err(error) = self.name().await
        {
            self.fail(&mut reserve, &error).await;
            return false;
        }
        if is_whole {
            // The disk is noted as nearly full before the reserve is noted as whole: space stays scarce in
            // between.
            self.measurement.held_bytes.store(self.sizes.whole_bytes, Ordering::Relaxed);
            if let Ok(free_bytes) = self.disk.free_bytes().await {
                self.note_free(free_bytes);
            }
            if self.condition.is_given_up.swap(false, Ordering::Relaxed) {
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
            // A part of the piece may be there, which nothing else would free.
            file.set_len(reserve.held_bytes).await?;
            return Err(error);
        }
        reserve.held_bytes += size_bytes;
        Ok(())
    }

    /// Gives the whole reserve its name: from now on less of it means that it was given up.
    async fn name(&self) -> io::Result<()> {
        self.disk.rename(RESERVE_NEW_PATH, RESERVE_PATH).await?;
        self.disk.sync_folder("").await?;
        self.condition.is_named.store(true, Ordering::Relaxed);
        Ok(())
    }
}
