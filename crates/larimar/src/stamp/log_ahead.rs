//! A process that stands by reads the log of a stamp whose owner is silent, or says that it is cut off from
//! the object store, before it may take the stamp.
//!
//! An owner that has gone is waited for until its lease has ended, and one that is cut off until it gives
//! the stamp up. Nobody needs the store meanwhile, and what a take-over reads of it is known already, but for
//! what was written last. What always holds: an owner that comes back is left alone; the log is read ahead at
//! most once in [`AGAIN_AFTER`] for one owner; no more memory is used than a part of the process's budget,
//! and none once the stamp is loaded.

use crate::stamp::stores::Stores;
use futures_util::future::{Either, select};
use parking_lot::Mutex;
use partition::{is_loaded, read_ahead};
use stamp::{BEATS_PER_TTL, Incarnation, RangeId};
use stamp_streams::{ReadAhead, SnapshotLayer, StampError, StampSnapshot, Surroundings};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use stream::Streams;
use tokio::sync::oneshot;

/// After so long the same owner's log is read ahead again: one whose beats are late now and then must not
/// cost the store its whole log each time.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// What may be read ahead, of the process's memory budget. The memory tables need as much again.
const PART_OF_MEMORY_BUDGET: u64 = 4;

/// Whether an owner that has been silent for so long may have gone: a beat is overdue by a third of the time
/// between two.
fn is_suspect(silent_for: Duration, ttl: Duration) -> bool {
    silent_for * 3 * BEATS_PER_TTL >= ttl * 4
}

/// Whose log was read ahead last.
struct Last {
    owner: Incarnation,
    /// By the monotonic clock.
    began_at: Duration,
    /// Its end ends the reading.
    reading: Option<oneshot::Sender<()>>,
}

/// The log of a stamp, read ahead.
pub(super) struct LogAhead {
    surroundings: Surroundings,
    size_bytes_max: u64,
    last: Mutex<Option<Last>>,
}

impl LogAhead {
    /// Nothing yet. `memory_budget`: bytes of the process.
    pub(super) fn new(stores: &Stores, memory_budget: u64) -> Self {
        LogAhead {
            surroundings: stores.surroundings.clone(),
            size_bytes_max: memory_budget / PART_OF_MEMORY_BUDGET,
            last: Mutex::default(),
        }
    }

    /// The range's owner has been silent for so long, and says whether it is cut off from the object store.
    pub(super) fn note_owner(
        &self,
        range: RangeId,
        owner: Incarnation,
        silent_for: Duration,
        is_cut_off: bool,
    ) {
        let surroundings = &self.surroundings;
        if !is_cut_off && !is_suspect(silent_for, surroundings.settings.ttl) {
            return self.end();
        }
        let now = surroundings.clock.monotonic();
        let mut last = self.last.lock();
        let is_read = |last: &Last| last.owner == owner && now.saturating_sub(last.began_at) < AGAIN_AFTER;
        if last.as_ref().is_some_and(is_read) {
            return;
        }
        let why = if is_cut_off { "is cut off from the object store" } else { "is silent" };
        tracing::info!(%owner, "the stamp's owner {why}: its log is read ahead");
        let (reading, ends) = oneshot::channel();
        *last = Some(Last { owner, began_at: now, reading: Some(reading) });
        surroundings.ahead.begin(self.size_bytes_max, is_loaded);
        surroundings.spawner.spawn("read-ahead", Box::pin(read(surroundings.clone(), range, ends)));
    }

    /// A take begins: what it reads to seal the logs, its load need not read again. Whether nothing was kept
    /// before.
    pub(super) fn keep(&self) -> bool {
        let begins = !self.surroundings.ahead.is_on();
        if begins {
            self.surroundings.ahead.begin(self.size_bytes_max, is_loaded);
        }
        begins
    }

    /// The range was taken: its load uses what is there, and no more is read ahead.
    pub(super) fn use_up(&self) {
        self.stop_reading();
        let size_bytes = self.surroundings.ahead.use_up();
        if size_bytes > 0 {
            tracing::info!(size_bytes, "what was read ahead of the stamp's log is used now");
        }
    }

    /// Nothing is kept any more.
    pub(super) fn end(&self) {
        self.stop_reading();
        self.surroundings.ahead.end();
    }

    fn stop_reading(&self) {
        if let Some(last) = self.last.lock().as_mut() {
            last.reading = None;
        }
    }
}

async fn read(surroundings: Surroundings, range: RangeId, ends: oneshot::Receiver<()>) {
    let ahead = surroundings.ahead.clone();
    match select(pin!(read_range(&surroundings, range, &ahead)), ends).await {
        Either::Left((Err(error), _)) => tracing::debug!(%error, "the stamp's log was not read ahead"),
        Either::Left((Ok(()), _)) => tracing::debug!("the stamp's log was read ahead"),
        Either::Right(_) => {}
    }
}

async fn read_range(
    surroundings: &Surroundings,
    range: RangeId,
    ahead: &Arc<ReadAhead>,
) -> Result<(), StampError> {
    let Some(snapshot) = StampSnapshot::read(surroundings).await? else { return Ok(()) };
    let (layer, _) = SnapshotLayer::open_damaged(&snapshot, range).await?;
    read_ahead(&Streams::of_stamp(layer), || ahead.is_full()).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_whose_beat_is_overdue_is_suspect() {
        let ttl = Duration::from_secs(9);
        for (silent_ms, expected) in [(0, false), (3000, false), (3900, false), (4000, true), (9000, true)] {
            assert_eq!(is_suspect(Duration::from_millis(silent_ms), ttl), expected, "{silent_ms}");
        }
    }
}
