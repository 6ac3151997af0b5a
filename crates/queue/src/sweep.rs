//! The sweep: removes expired messages that nobody asks for.
//!
//! Each queue's head says when its first message may expire; until then a queue costs a sweep one point read. A queue
//! that is due is scanned, and what has expired is removed by ordinary operations. If one scan, over one snapshot, saw
//! every message and all that had expired was removed, the head is told when the next one expires; messages put meanwhile
//! are noted apart. A scan collects a bounded number of messages; what is behind them waits for no other round, or
//! messages could expire faster than they are removed: queues that have more get further scans at once, in turn. What
//! always holds: a round looks at a bounded number of queues; rounds take a small part of the time at most, but for
//! those further scans; a sweep that is cut off is due again; what can't be read stays, and keeps nothing that is behind it.

use crate::error::QueueError;
use crate::head_row::HeadRow;
use crate::message_row::{MessageRow, NEVER};
use crate::message_store::{MessageStore, Position, position_of};
use crate::queue_row::messages_id_of;
use crate::queue_service::QueueService;
use crate::remove_expired::{NoteSweep, REMOVED_TOGETHER_MAX, RemoveExpired, SweepNote};
use base::codec::DecodeError;
use base::{Clock, Ticks};
use bytes::Bytes;
use partition::key::parse_row_key;
use partition::{KeyRange, ObjectTable, RowRef, Scan, ScanEnd, Visit};
use service::container::is_container;
use service::{PassedOver, SERVICE_QUEUE};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often rounds start, at most.
pub const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// After a round the sweep rests this many times as long as the round took, without the further scans.
const REST_FACTOR: u32 = 20;

/// Further scans of queues that have more go on for so long; then the next round looks at the others at once.
const CATCH_UP_FOR: Duration = Duration::from_secs(10);

/// Before each further scan others get their turn for so long.
const GIVE_WAY_FOR: Duration = Duration::from_millis(1);

/// Rows of the Container object table that one round looks at.
const CONTAINERS_SEEN_MAX: usize = 4096;

/// Expired messages that one scan of a queue collects.
const EXPIRED_COLLECTED_MAX: usize = 16 * 1024;

/// Runs rounds for as long as the service is there.
pub(crate) async fn run(service: Weak<QueueService>, clock: Arc<dyn Clock>) {
    let mut rest_for = SWEEP_EVERY;
    let mut start = Bytes::new();
    loop {
        clock.sleep(rest_for).await;
        let Some(service) = service.upgrade() else { return };
        rest_for = run_round(&service, &*clock, &mut start, EXPIRED_COLLECTED_MAX).await;
    }
}

/// Runs a round and what follows at once. Returns the rest before the next one.
async fn run_round(
    service: &QueueService,
    clock: &dyn Clock,
    start: &mut Bytes,
    collected_max: usize,
) -> Duration {
    let began_at = clock.monotonic();
    let mut passed_over = PassedOver::default();
    let swept = sweep_round(service, start, collected_max, &mut passed_over).await;
    let ended_at = clock.monotonic();
    let mut rest_for = SWEEP_EVERY.max(ended_at.saturating_sub(began_at).saturating_mul(REST_FACTOR));
    match swept {
        Ok(Round { mut removed, mut unfinished }) => {
            while !unfinished.is_empty() {
                if clock.monotonic().saturating_sub(ended_at) >= CATCH_UP_FOR {
                    rest_for = GIVE_WAY_FOR;
                    break;
                }
                clock.sleep(GIVE_WAY_FOR).await;
                removed += catch_up(service, &mut unfinished, collected_max, &mut passed_over).await;
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

/// What a round did.
struct Round {
    removed: u64,
    unfinished: VecDeque<Unfinished>,
}

/// A queue that has more to remove than one scan collected.
struct Unfinished {
    store: MessageStore,
    /// Where the next scan begins; `None`: at the front, to see every message in one snapshot.
    from: Option<Bytes>,
    /// What was removed since the last scan that began at the front.
    removed: u64,
}

/// What one scan of a queue, and the removals after it, came to.
struct Swept {
    removed: u64,
    /// It collected as many as it may: here it would go on.
    go_on: Option<Bytes>,
}

/// Sweeps the queues from `start` on, each with one scan; `start` becomes where the next round goes on.
async fn sweep_round(
    service: &QueueService,
    start: &mut Bytes,
    collected_max: usize,
    passed_over: &mut PassedOver,
) -> Result<Round, QueueError> {
    let range = KeyRange { start: std::mem::take(start), end: None };
    let note = |error| passed_over.note(&error);
    let scan = StoreScan::default();
    let (scan, end) = service.partitions.scan_past_damage(ObjectTable::Container, range, scan, note).await?;
    passed_over.add(scan.passed_over);
    if let ScanEnd::More(key) = end {
        *start = key;
    }
    let mut round = Round { removed: 0, unfinished: VecDeque::new() };
    for store in scan.stores {
        match sweep_queue(service, &store, None, collected_max, passed_over).await {
            Ok(Swept { removed, go_on }) => {
                round.removed += removed;
                if go_on.is_some() {
                    round.unfinished.push_back(Unfinished { store, from: go_on, removed });
                }
            }
            Err(error) => passed_over.note_failure(error.below(), &error),
        }
    }
    Ok(round)
}

/// Gives the first of the unfinished queues one more scan. Returns how many messages it removed.
async fn catch_up(
    service: &QueueService,
    unfinished: &mut VecDeque<Unfinished>,
    collected_max: usize,
    passed_over: &mut PassedOver,
) -> u64 {
    let Some(Unfinished { store, from, removed: before }) = unfinished.pop_front() else { return 0 };
    let began_at_front = from.is_none();
    match sweep_queue(service, &store, from, collected_max, passed_over).await {
        Ok(Swept { removed, go_on }) => {
            let since_front = if began_at_front { removed } else { before + removed };
            // Once the end is reached from somewhere behind the front, one more scan sees everything at once and tells the
            // head; not if nothing can be removed, or that would never end.
            let comes_again = go_on.is_some() || (!began_at_front && since_front > 0);
            if comes_again {
                unfinished.push_back(Unfinished { store, from: go_on, removed: since_front });
            }
            removed
        }
        Err(error) => {
            passed_over.note_failure(error.below(), &error);
            0
        }
    }
}

/// Scans a queue that is due, from its front or from a former scan's end on, and removes what has expired.
async fn sweep_queue(
    service: &QueueService,
    store: &MessageStore,
    from: Option<Bytes>,
    collected_max: usize,
    passed_over: &mut PassedOver,
) -> Result<Swept, QueueError> {
    let row = service.partitions.get(ObjectTable::Message, &store.head_key()).await?;
    let head = HeadRow::open(row.as_ref())?;
    let now = service.now(store)?;
    if head.first_expiry() > now {
        return Ok(Swept { removed: 0, go_on: None });
    }
    let begins_at_front = from.is_none();
    let mut range = store.messages_between(head.low_water, Ticks(u64::MAX));
    match from {
        Some(from) => range.start = range.start.max(from),
        None => {
            let note = SweepNote::Begins;
            service.partitions.execute(NoteSweep { store: store.clone(), note }).await??;
        }
    }
    let scan = ExpiryScan {
        now,
        collected_max,
        expired: Vec::new(),
        first_expiry: NEVER,
        passed_over: PassedOver::default(),
    };
    let (scan, end) = service.partitions.scan(ObjectTable::Message, range, scan).await?;
    passed_over.add(scan.passed_over);
    let mut removed = 0;
    for positions in scan.expired.chunks(REMOVED_TOGETHER_MAX) {
        match remove(service, store, positions).await {
            Ok(count) => removed += count,
            // One of them can't be read: it must not keep the others.
            Err(_) => {
                for position in positions {
                    match remove(service, store, std::slice::from_ref(position)).await {
                        Ok(count) => removed += count,
                        Err(error) => passed_over.note_failure(error.below(), &error),
                    }
                }
            }
        }
    }
    match end {
        ScanEnd::More(key) => Ok(Swept { removed, go_on: Some(key) }),
        ScanEnd::Complete => {
            // Otherwise it stays due.
            if begins_at_front && removed == scan.expired.len() as u64 {
                let note = SweepNote::Saw(scan.first_expiry);
                service.partitions.execute(NoteSweep { store: store.clone(), note }).await??;
            }
            Ok(Swept { removed, go_on: None })
        }
    }
}

async fn remove(
    service: &QueueService,
    store: &MessageStore,
    positions: &[Position],
) -> Result<u64, QueueError> {
    let remove = RemoveExpired { store: store.clone(), positions: positions.to_vec() };
    service.partitions.execute(remove).await?
}

/// Collects where the messages of queues are.
#[derive(Default)]
struct StoreScan {
    seen: usize,
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
        if self.seen == CONTAINERS_SEEN_MAX {
            return Visit::StopBefore;
        }
        self.seen += 1;
        if let Err(damage) = self.take(row) {
            self.passed_over.note(&damage);
        }
        Visit::Continue
    }
}

/// Collects expired messages, and when the first of the others expires.
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
