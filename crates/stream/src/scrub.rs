//! The scrub: reads sealed extents in the background, a little at a time, so that damage is noticed while
//! other copies of the data still exist, and not when it is needed. Damage is a block that does not
//! read, or an extent whose blocks are not the ones that were appended (see `sealed.rs`; the reader
//! compares).
//!
//! What always holds: it reads at most so many bytes a second as it is allowed, changes nothing, and reads
//! nothing that still grows. Damage is logged and counted at each round, until it is repaired.

use crate::error::StreamError;
use crate::extent_node::ExtentNode;
use crate::ids::ExtentId;
use base::Clock;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// Time between the end of a round and the next.
const ROUND_PAUSE: Duration = Duration::from_secs(3600);
/// The scrub sleeps each time it has read so many bytes.
const STEP_SIZE_BYTES: u64 = 1 << 20;

/// What the scrub has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubStatistics {
    /// Rounds over all sealed extents that have ended.
    pub rounds: u64,
    /// Bytes read.
    pub size_bytes: u64,
    /// Extents found damaged, each once a round.
    pub damaged_extents: u64,
}

/// Shared by the task and the readers of its statistics.
pub(crate) struct Scrub {
    statistics: Mutex<ScrubStatistics>,
    closing: watch::Sender<bool>,
}

impl Default for Scrub {
    fn default() -> Self {
        Scrub { statistics: Mutex::default(), closing: watch::Sender::new(false) }
    }
}

impl Scrub {
    pub(crate) fn statistics(&self) -> ScrubStatistics {
        *self.statistics.lock()
    }

    /// Ends the task, also in the middle of a pause, and returns once it has ended: an hour's pause must not
    /// outlive the process's timers.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        self.closing.closed().await;
    }

    /// Pauses. True: the end has come.
    async fn pause(clock: &Arc<dyn Clock>, closing: &mut watch::Receiver<bool>, pause_for: Duration) -> bool {
        tokio::select! {
            biased;
            // An error would mean that the layer is gone.
            _ = closing.wait_for(|closing| *closing) => true,
            () = clock.sleep(pause_for) => false,
        }
    }

    /// Receives the request to close; made before the task starts, so that closing waits for it.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// The task; ends with the node.
    pub(crate) async fn run(
        self: Arc<Self>,
        mut closing: watch::Receiver<bool>,
        node: Weak<ExtentNode>,
        clock: Arc<dyn Clock>,
        bytes_per_second: u64,
    ) {
        loop {
            let Some(extents) = node.upgrade().map(|node| node.list()) else { return };
            for extent in extents {
                match self.scrub(&node, &clock, &mut closing, extent, bytes_per_second).await {
                    Ok(true) => {}
                    Ok(false) => return,
                    // It was deleted meanwhile.
                    Err(StreamError::NoExtent(_)) => {}
                    Err(error) => {
                        self.statistics.lock().damaged_extents += 1;
                        tracing::error!(%extent, %error, "the scrub found damage; larimar check tells what it means");
                    }
                }
            }
            self.statistics.lock().rounds += 1;
            if Self::pause(&clock, &mut closing, ROUND_PAUSE).await {
                return;
            }
        }
    }

    /// Reads one extent if it is sealed. False: the end.
    async fn scrub(
        &self,
        node: &Weak<ExtentNode>,
        clock: &Arc<dyn Clock>,
        closing: &mut watch::Receiver<bool>,
        extent: ExtentId,
        bytes_per_second: u64,
    ) -> Result<bool, StreamError> {
        let mut reader = match node.upgrade() {
            Some(node) if node.stat(extent)?.frozen => node.reader(extent, 0)?,
            Some(_) => return Ok(true),
            None => return Ok(false),
        };
        let mut owed = 0;
        loop {
            let block = reader.next().await?;
            owed += block.as_ref().map_or(0, |(location, _)| location.end() - location.offset);
            if owed >= STEP_SIZE_BYTES || block.is_none() {
                self.statistics.lock().size_bytes += owed;
                let pause_for = Duration::from_micros(owed.saturating_mul(1_000_000) / bytes_per_second);
                owed = 0;
                if Self::pause(clock, closing, pause_for).await {
                    return Ok(false);
                }
            }
            if block.is_none() {
                if reader.mended_count() > 0 {
                    // The reader has logged which.
                    self.statistics.lock().damaged_extents += 1;
                }
                return Ok(true);
            }
        }
    }
}
