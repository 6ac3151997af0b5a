//! The task that makes the reserve, makes it again after it was given up, and measures what is free.

use super::Space;
use super::choices::{WATCH_EVERY, is_little, look_again_after};
use base::Clock;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;

/// While space is scarce, this often: deletions wait for reclaimed space.
const SCARCE_WATCH_EVERY: Duration = Duration::from_millis(100);
/// Between two pieces of the reserve, so that other writes reach the disk.
const PIECE_PAUSE: Duration = Duration::from_millis(10);

impl Space {
    /// The task: makes the reserve, and makes it again after it was given up and there is space.
    pub(crate) async fn run(self: Arc<Self>, mut closing: watch::Receiver<bool>, clock: Arc<dyn Clock>) {
        // A folder that is used only briefly should not cost a reserve.
        let mut pause_for = if self.is_named() { Duration::ZERO } else { WATCH_EVERY };
        loop {
            tokio::select! {
                biased;
                // An error would mean that the layer is gone.
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
        self.measurement.held_bytes.store(self.sizes.whole_bytes, Ordering::Relaxed);
        self.note_free(free_bytes);
        if free_bytes < self.sizes.floor_bytes {
            // Deletions must not wait for more while there is a reserve.
            self.give_up(self.given_up()).await;
            return SCARCE_WATCH_EVERY;
        }
        look_again_after(free_bytes, self.sizes.whole_bytes)
    }

    /// Notes how much is free, and whether the disk is nearly full.
    pub(super) fn note_free(&self, free_bytes: u64) {
        self.measurement.free_bytes.store(free_bytes, Ordering::Relaxed);
        let was_low = self.condition.is_low.load(Ordering::Relaxed);
        let is_low = is_little(was_low, free_bytes, self.sizes.whole_bytes);
        if is_low == was_low {
            return;
        }
        self.condition.is_low.store(is_low, Ordering::Relaxed);
        if is_low {
            tracing::info!(
                free_bytes,
                "the disk is nearly full: until there is space only what reclaims some is accepted"
            );
            self.became_scarce.notify_one();
        } else {
            tracing::info!(free_bytes, "the disk has space again: all writes are accepted");
        }
    }
}
