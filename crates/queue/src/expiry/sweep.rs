//! The sweep: removes expired messages that no get meets.
//!
//! Each queue's head holds the instant at which its first message may expire; until then a queue costs a
//! sweep one point read. A queue that is due is scanned, and expired messages are removed by ordinary
//! operations. If one scan, over one snapshot, covered every message and all expired ones were removed, the
//! next expiry is stored in the head; messages put meanwhile are counted apart. A scan collects a bounded
//! number of messages. Queues with more get further scans at once, in turn, and not in the next round, or
//! messages could expire faster than they are removed.
//!
//! What always holds: a round reads a bounded number of queues; apart from those further scans, rounds take a
//! small part of the time at most; an interrupted sweep is due again; a row that can't be decoded stays, and
//! does not keep the rows after it from being removed.

use crate::error::QueueError;
use crate::expiry::remove_expired::{REMOVED_TOGETHER_MAX, RemoveExpired, StoreSweepProgress, SweepProgress};
use crate::rows::head_row::HeadRow;
use crate::rows::message_row::{MessageRow, NEVER};
use crate::rows::message_store::{MessageStore, Position, position_of};
use crate::rows::queue_row::messages_id_of;
use base::codec::DecodeError;
use base::{Clock, Ticks};
use bytes::Bytes;
use partition::key::parse_row_key;
use partition::{KeyRange, ObjectTable, Partitions, RowRef, Scan, ScanEnd, Visit};
use service::container::is_container;
use service::{PassedOver, SERVICE_QUEUE};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often rounds start, at most.
pub const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// The pause after a round is this many times as long as the round took without the further scans.
const REST_FACTOR: u32 = 20;

/// Further scans take this long at most; then the next round begins at once, so that the other queues get a
/// turn.
const CATCH_UP_FOR: Duration = Duration::from_secs(10);

/// Pause before each further scan, so that other work gets a turn.
const YIELD_FOR: Duration = Duration::from_millis(1);

/// Rows of the Container object table that one round reads.
const CONTAINERS_READ_MAX: usize = 4096;

/// Expired messages that one scan of a queue collects.
const EXPIRED_COLLECTED_MAX: usize = 16 * 1024;

/// What a sweep works on. The sweep ends when the service drops it.
pub(crate) struct Sweeper {
    pub(crate) partitions: Arc<Partitions>,
}

/// Runs rounds until the sweeper is dropped.
pub(crate) async fn run(sweeper: Weak<Sweeper>, clock: Arc<dyn Clock>) {
    let mut rest_for = SWEEP_EVERY;
    let mut start = Bytes::new();
    loop {
        clock.sleep(rest_for).await;
        let Some(sweeper) = sweeper.upgrade() else { return };
        rest_for = run_round(&sweeper.partitions, &*clock, &mut start, EXPIRED_COLLECTED_MAX).await;
    }
}

/// Runs a round and the further scans after it. Returns the pause before the next round.
async fn run_round(
    partitions: &Partitions,
    clock: &dyn Clock,
    start: &mut Bytes,
    collected_max: usize,
) -> Duration {
    let began_at = clock.monotonic();
    let mut passed_over = PassedOver::default();
    let outcome = sweep_round(partitions, start, collected_max, &mut passed_over).await;
    let ended_at = clock.monotonic();
    let mut rest_for = SWEEP_EVERY.max(ended_at.saturating_sub(began_at).saturating_mul(REST_FACTOR));
    match outcome {
        Ok(RoundOutcome { mut removed, mut unfinished }) => {
            while !unfinished.is_empty() {
                if clock.monotonic().saturating_sub(ended_at) >= CATCH_UP_FOR {
                    rest_for = YIELD_FOR;
                    break;
                }
                clock.sleep(YIELD_FOR).await;
                removed += catch_up(partitions, &mut unfinished, collected_max, &mut passed_over).await;
            }
            if removed > 0 {
                tracing::debug!("{removed} expired messages were removed");
            }
        }
        Err(error) => tracing::warn!("expired messages could not be removed: {error}"),
    }
    passed_over.log("expired messages");
    rest_for
}

/// What a round has done.
struct RoundOutcome {
    removed: u64,
    unfinished: VecDeque<UnfinishedQueue>,
}

/// A queue with more expired messages than one scan has collected.
struct UnfinishedQueue {
    store: MessageStore,
    /// Where the next scan begins; `None`: at the front, to read every message in one snapshot.
    from: Option<Bytes>,
    /// Messages removed since the last scan that began at the front.
    removed: u64,
}

/// The outcome of one scan of a queue and of the removals after it.
struct SweepOutcome {
    removed: u64,
    /// Where the next scan continues, if this one collected as many as it may.
    continue_at: Option<Bytes>,
}

/// Sweeps the queues from `start` on, each with one scan; `start` becomes the next round's start.
async fn sweep_round(
    partitions: &Partitions,
    start: &mut Bytes,
    collected_max: usize,
    passed_over: &mut PassedOver,
) -> Result<RoundOutcome, QueueError> {
    let range = KeyRange { start: std::mem::take(start), end: None };
    let note = |error| passed_over.note(&error);
    let scan = StoreScan::default();
    let (scan, end) = partitions.scan_past_damage(ObjectTable::Container, range, scan, note).await?;
    passed_over.add(scan.passed_over);
    if let ScanEnd::More(key) = end {
        *start = key;
    }
    let mut round = RoundOutcome { removed: 0, unfinished: VecDeque::new() };
    for store in scan.stores {
        match sweep_queue(partitions, &store, None, collected_max, passed_over).await {
            Ok(SweepOutcome { removed, continue_at }) => {
                round.removed += removed;
                if continue_at.is_some() {
                    round.unfinished.push_back(UnfinishedQueue { store, from: continue_at, removed });
                }
            }
            Err(error) => passed_over.note_failure(error.below(), &error),
        }
    }
    Ok(round)
}

/// Gives the first of the unfinished queues one more scan. Returns how many messages it removed.
async fn catch_up(
    partitions: &Partitions,
    unfinished: &mut VecDeque<UnfinishedQueue>,
    collected_max: usize,
    passed_over: &mut PassedOver,
) -> u64 {
    let Some(UnfinishedQueue { store, from, removed: before }) = unfinished.pop_front() else { return 0 };
    let began_at_front = from.is_none();
    match sweep_queue(partitions, &store, from, collected_max, passed_over).await {
        Ok(SweepOutcome { removed, continue_at }) => {
            let since_front = if began_at_front { removed } else { before + removed };
            // A scan that reached the end without having begun at the front is followed by one that reads
            // everything in one snapshot and stores the next expiry, unless nothing was removed, or scans
            // would never end.
            let needs_scan = continue_at.is_some() || (!began_at_front && since_front > 0);
            if needs_scan {
                unfinished.push_back(UnfinishedQueue { store, from: continue_at, removed: since_front });
            }
            removed
        }
        Err(error) => {
            passed_over.note_failure(error.below(), &error);
            0
        }
    }
}

/// Scans a queue that is due, from its front or from a former scan's end on, and removes expired messages.
async fn sweep_queue(
    partitions: &Partitions,
    store: &MessageStore,
    from: Option<Bytes>,
    collected_max: usize,
    passed_over: &mut PassedOver,
) -> Result<SweepOutcome, QueueError> {
    let row = partitions.get(ObjectTable::Message, &store.head_key()).await?;
    let head = HeadRow::open(row.as_ref())?;
    let now = store.now(partitions)?;
    if head.first_expiry() > now {
        return Ok(SweepOutcome { removed: 0, continue_at: None });
    }
    let begins_at_front = from.is_none();
    let mut range = store.messages_between(head.low_water, Ticks(u64::MAX));
    match from {
        Some(from) => range.start = range.start.max(from),
        None => {
            let progress = SweepProgress::Begun;
            partitions.execute(StoreSweepProgress { store: store.clone(), progress }).await??;
        }
    }
    let scan = ExpiryScan {
        now,
        collected_max,
        expired: Vec::new(),
        first_expiry: NEVER,
        passed_over: PassedOver::default(),
    };
    let (scan, end) = partitions.scan(ObjectTable::Message, range, scan).await?;
    passed_over.add(scan.passed_over);
    let mut removed = 0;
    for positions in scan.expired.chunks(REMOVED_TOGETHER_MAX) {
        match remove(partitions, store, positions).await {
            Ok(count) => removed += count,
            // One of them can't be decoded: the others are removed one by one.
            Err(_) => {
                for position in positions {
                    match remove(partitions, store, std::slice::from_ref(position)).await {
                        Ok(count) => removed += count,
                        Err(error) => passed_over.note_failure(error.below(), &error),
                    }
                }
            }
        }
    }
    match end {
        ScanEnd::More(key) => Ok(SweepOutcome { removed, continue_at: Some(key) }),
        ScanEnd::Complete => {
            // Otherwise the head stays as it is, and the queue stays due.
            if begins_at_front && removed == scan.expired.len() as u64 {
                let progress = SweepProgress::Complete(scan.first_expiry);
                partitions.execute(StoreSweepProgress { store: store.clone(), progress }).await??;
            }
            Ok(SweepOutcome { removed, continue_at: None })
        }
    }
}

async fn remove(
    partitions: &Partitions,
    store: &MessageStore,
    positions: &[Position],
) -> Result<u64, QueueError> {
    let remove = RemoveExpired { store: store.clone(), positions: positions.to_vec() };
    partitions.execute(remove).await?
}

/// Collects the queues' message stores.
#[derive(Default)]
struct StoreScan {
    rows_read: usize,
    stores: Vec<MessageStore>,
    passed_over: PassedOver,
}

impl StoreScan {
    fn take(&mut self, row: RowRef<'_>) -> Result<(), DecodeError> {
        let parts = parse_row_key(row.key).ok_or(DecodeError("container key"))?;
        if is_container(&parts) && parts.partition_name == SERVICE_QUEUE {
            let messages_id = messages_id_of(row.value)?;
            self.stores.push(MessageStore { account: parts.account, messages_id });
        }
        Ok(())
    }
}

impl Scan for StoreScan {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.rows_read == CONTAINERS_READ_MAX {
            return Visit::StopBefore;
        }
        self.rows_read += 1;
        if let Err(damage) = self.take(row) {
            self.passed_over.note(&damage);
        }
        Visit::Continue
    }
}

/// Collects expired messages and the first expiry of the others.
struct ExpiryScan {
    now: Ticks,
    collected_max: usize,
    expired: Vec<Position>,
    first_expiry: Ticks,
    passed_over: PassedOver,
}

impl ExpiryScan {
    fn take(&mut self, row: RowRef<'_>) -> Result<(), DecodeError> {
        let expires_at = MessageRow::expiry_of(row.value)?;
        if expires_at <= self.now {
            self.expired.push(position_of(row.key).ok_or(DecodeError("message key"))?);
        } else {
            self.first_expiry = self.first_expiry.min(expires_at);
        }
        Ok(())
    }
}

impl Scan for ExpiryScan {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.expired.len() >= self.collected_max {
            return Visit::StopBefore;
        }
        if let Err(damage) = self.take(row) {
            self.passed_over.note(&damage);
        }
        Visit::Continue
    }
}

#[cfg(test)]
mod tests;
