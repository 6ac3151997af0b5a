//! The sweep: removes expired messages that nobody asks for.
//!
//! Each queue's head says when its first message may expire; until then a queue costs a sweep one point read. A queue
//! that is due is scanned once, over one snapshot, and what has expired is removed by ordinary operations. If all of it
//! was removed, the head is told when the next one expires; messages put meanwhile are noted apart. What always holds: a
//! round looks at a bounded number of queues and collects a bounded number of messages; rounds take a small part of the
//! time at most; a sweep that is cut off is due again; what can't be read stays, and keeps nothing that is behind it.

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
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often rounds start, at most.
pub const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// After a round the sweep rests this many times as long as the round took.
const REST_FACTOR: u32 = 20;

/// Rows of the Container object table that one round looks at.
const CONTAINERS_SEEN_MAX: usize = 4096;

/// Expired messages of one queue that a round removes.
const EXPIRED_COLLECTED_MAX: usize = 16 * 1024;

/// Runs rounds for as long as the service is there.
pub(crate) async fn run(service: Weak<QueueService>, clock: Arc<dyn Clock>) {
    let mut rest_for = SWEEP_EVERY;
    let mut start = Bytes::new();
    loop {
        clock.sleep(rest_for).await;
        let Some(service) = service.upgrade() else { return };
        let began_at = clock.monotonic();
        let mut passed_over = PassedOver::default();
        let swept = sweep_round(&service, &mut start, &mut passed_over).await;
        passed_over.log("expired messages");
        match swept {
            Ok(0) => {}
            Ok(removed) => tracing::debug!("{removed} expired messages were removed"),
            Err(error) => tracing::warn!("expired messages could not be removed: {error}"),
        }
        let took_for = clock.monotonic().saturating_sub(began_at);
        rest_for = SWEEP_EVERY.max(took_for.saturating_mul(REST_FACTOR));
    }
}

/// Sweeps the queues from `start` on; `start` becomes where the next round goes on. Returns how many messages it removed.
async fn sweep_round(
    service: &QueueService,
    start: &mut Bytes,
    passed_over: &mut PassedOver,
) -> Result<u64, QueueError> {
    let range = KeyRange { start: std::mem::take(start), end: None };
    let (scan, end) = service.partitions.scan(ObjectTable::Container, range, StoreScan::default()).await?;
    passed_over.add(scan.passed_over);
    if let ScanEnd::More(key) = end {
        *start = key;
    }
    let mut removed = 0;
    for store in scan.stores {
        match sweep_queue(service, store, passed_over).await {
            Ok(count) => removed += count,
            Err(error) => passed_over.note(&error),
        }
    }
    Ok(removed)
}

async fn sweep_queue(
    service: &QueueService,
    store: MessageStore,
    passed_over: &mut PassedOver,
) -> Result<u64, QueueError> {
    let row = service.partitions.get(ObjectTable::Message, &store.head_key()).await?;
    let head = HeadRow::open(row.as_ref())?;
    let now = service.clock.now();
    if head.first_expiry() > now {
        return Ok(0);
    }
    service.partitions.execute(NoteSweep { store: store.clone(), note: SweepNote::Begins }).await??;
    let mut is_whole = true;
    let mut scan =
        ExpiryScan { now, expired: Vec::new(), first_expiry: NEVER, passed_over: PassedOver::default() };
    let mut range = store.messages_between(head.low_water, Ticks(u64::MAX));
    loop {
        let end;
        (scan, end) = service.partitions.scan(ObjectTable::Message, range.clone(), scan).await?;
        match end {
            ScanEnd::Complete => break,
            // It has collected enough.
            ScanEnd::More(_) if scan.expired.len() >= EXPIRED_COLLECTED_MAX => {
                is_whole = false;
                break;
            }
            // The layer below ended at a bound of its own; what follows is another snapshot.
            ScanEnd::More(key) => {
                is_whole = false;
                range.start = key;
            }
        }
    }
    passed_over.add(scan.passed_over);
    let mut removed = 0;
    for positions in scan.expired.chunks(REMOVED_TOGETHER_MAX) {
        match remove(service, &store, positions).await {
            Ok(count) => removed += count,
            // One of them can't be read: it must not keep the others.
            Err(_) => {
                for position in positions {
                    match remove(service, &store, std::slice::from_ref(position)).await {
                        Ok(count) => removed += count,
                        Err(error) => passed_over.note(&error),
                    }
                }
            }
        }
    }
    // Otherwise it stays due.
    if is_whole && removed == scan.expired.len() as u64 {
        let note = SweepNote::Saw(scan.first_expiry);
        service.partitions.execute(NoteSweep { store, note }).await??;
    }
    Ok(removed)
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
        if self.expired.len() >= EXPIRED_COLLECTED_MAX {
            return Visit::StopBefore;
        }
        if let Err(damage) = self.take(row) {
            self.passed_over.note(&damage);
        }
        Visit::Continue
    }
}
