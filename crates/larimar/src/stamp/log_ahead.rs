//! A process that stands by reads the log of a stamp whose owner is silent, or says that it is cut off from
//! the object store, before it may take the stamp.
//!
//! An owner that has gone is waited for until its lease has ended, and one that is cut off until it gives
//! the stamp up. What a take-over reads of the log is known then, but for what was written last. What always
//! holds: an owner that comes back is left alone; the log is read ahead at most once in [`AGAIN_AFTER`] for
//! one owner and reason; no more memory is used than a part of the process's budget, and none once the stamp
//! is loaded.

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

/// Why a log is read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Silent,
    CutOff,
}

impl Reason {
    fn of(silent_for: Duration, is_cut_off: bool, ttl: Duration) -> Option<Self> {
        match is_cut_off {
            true => Some(Reason::CutOff),
            false => is_suspect(silent_for, ttl).then_some(Reason::Silent),
        }
    }
}

/// Whose log was read ahead last.
struct Last {
    owner: Incarnation,
    reason: Reason,
    /// By the monotonic clock.
    began_at: Duration,
    /// Its end ends the reading.
    reading: Option<oneshot::Sender<()>>,
}

impl Last {
    /// Whether the log of this owner was read ahead for this reason a short time ago. One that was cut off
    /// for a moment may die in the next.
    fn covers(&self, owner: Incarnation, reason: Reason, now: Duration) -> bool {
        let is_recent = now.saturating_sub(self.began_at) < AGAIN_AFTER;
        (self.owner, self.reason) == (owner, reason) && is_recent
    }
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
        let Some(reason) = Reason::of(silent_for, is_cut_off, surroundings.settings.ttl) else {
            return self.end();
        };
        let now = surroundings.clock.monotonic();
        let mut last = self.last.lock();
        // What is under way for one reason serves for another.
        let is_reading = surroundings.ahead.is_on();
        let covers = |last: &Last| last.owner == owner && is_reading || last.covers(owner, reason, now);
        if last.as_ref().is_some_and(covers) {
            return;
        }
        let why = match reason {
            Reason::Silent => "is silent",
            Reason::CutOff => "is cut off from the object store",
        };
        tracing::info!(%owner, "the stamp's owner {why}: its log is read ahead");
        let (reading, ends) = oneshot::channel();
        *last = Some(Last { owner, reason, began_at: now, reading: Some(reading) });
        surroundings.ahead.begin(self.size_bytes_max, is_loaded);
        surroundings.spawner.spawn("read-ahead", Box::pin(read(surroundings.clone(), range, ends)));
    }

    /// Whether anything was read.
    pub(super) fn has_any(&self) -> bool {
        !self.surroundings.ahead.is_empty()
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
    fn a_log_is_read_ahead_once_a_minute_for_one_owner_and_reason() {
        let (owner, second) = (Incarnation(1), Duration::from_secs);
        let last = |reason| Last { owner, reason, began_at: second(100), reading: None };
        for (last, owner, reason, now, expected) in [
            (last(Reason::Silent), owner, Reason::Silent, 159, true),
            (last(Reason::Silent), owner, Reason::Silent, 160, false),
            (last(Reason::Silent), Incarnation(2), Reason::Silent, 101, false),
            (last(Reason::CutOff), owner, Reason::Silent, 101, false),
            (last(Reason::CutOff), owner, Reason::CutOff, 101, true),
        ] {
            assert_eq!(last.covers(owner, reason, second(now)), expected, "{owner:?} {reason:?} {now}");
        }
        let ttl = second(9);
        assert_eq!(Reason::of(second(1), false, ttl), None);
        assert_eq!(Reason::of(second(1), true, ttl), Some(Reason::CutOff));
        assert_eq!(Reason::of(second(5), false, ttl), Some(Reason::Silent));
    }

    #[test]
    fn an_owner_whose_beat_is_overdue_is_suspect() {
        let ttl = Duration::from_secs(9);
        for (silent_ms, expected) in [(0, false), (3000, false), (3900, false), (4000, true), (9000, true)] {
            assert_eq!(is_suspect(Duration::from_millis(silent_ms), ttl), expected, "{silent_ms}");
        }
    }
}
