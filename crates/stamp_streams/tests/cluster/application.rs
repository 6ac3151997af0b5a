//! A range as its owner serves it: writes decided over what was written before, reads, checkpoints.

use crate::ledger::Ending;
use crate::record::{State, WriteId, decode_records, encode_records};
use crate::server::Server;
use base::LoopSign as _;
use futures_util::future::{Either, select};
use parking_lot::Mutex;
use stamp::{Change, KeyLimits, RangeDocument, StreamEntry, StreamId, TrimPoint};
use stamp_streams::{AppendError, LoopSign, OwnedRange, StampError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Notify, oneshot};

/// What the log of a range is for.
pub(crate) const LOG: &str = "log";
/// What the stream of its checkpoints is for.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// Writes that wait for a range, and writes of a part.
const QUEUE_MAX: usize = 16;
const GROUP_MAX: usize = 3;

struct Waiting {
    key: u8,
    id: WriteId,
    reply: oneshot::Sender<Ending>,
}

/// A range that was read, and is served.
pub(crate) struct Served {
    pub(crate) owned: Arc<OwnedRange>,
    pub(crate) keys: KeyLimits,
    /// What is durable.
    durable: Mutex<State>,
    /// The newest checkpoint, and the first ordinal that it does not cover.
    checkpoint: Mutex<(State, u64)>,
    /// Held while a checkpoint is made.
    checkpointing: tokio::sync::Mutex<()>,
    queue: Mutex<VecDeque<Waiting>>,
    queued: Notify,
    /// Its group commit never goes round again.
    hangs: AtomicBool,
}

fn stream_for<'a>(document: &'a RangeDocument, purpose: &str) -> Option<(StreamId, &'a StreamEntry)> {
    let found = document.streams.iter().find(|(_, entry)| entry.purpose == purpose);
    found.map(|(id, entry)| (*id, entry))
}

pub(crate) fn is_within(key: u8, keys: &KeyLimits) -> bool {
    keys.contains(&[key])
}

/// A range could not be read.
pub(crate) enum LoadError {
    /// A stored thing, or a store.
    Stamp(StampError),
    /// What is there is not what was written.
    Wrong(String),
}

impl From<StampError> for LoadError {
    fn from(error: StampError) -> Self {
        LoadError::Stamp(error)
    }
}

/// The newest checkpoint in extents that have a length, and the first ordinal that it does not cover.
async fn read_checkpoint(owned: &Arc<OwnedRange>) -> Result<(State, u64), LoadError> {
    let document = owned.document();
    let may_go_on = || owned.stopped().is_none();
    let (mut state, mut covered_to) = (State::default(), 0);
    let Some((_, checkpoints)) = stream_for(&document, CHECKPOINT) else {
        return Err(LoadError::Wrong("a range without its streams".to_owned()));
    };
    for entry in &checkpoints.extents {
        let Some(mut reader) = owned.reader(entry) else { break };
        while let Some(part) = reader.next(may_go_on).await? {
            (state, covered_to) = State::decode(&part.body);
            state.writes.retain(|key, _| is_within(*key, &document.keys));
            if entry.limits.is_some() {
                state.last = 0;
            }
        }
    }
    Ok((state, covered_to))
}

/// Applies the extents of the log that have a length to a checkpoint: the state, and the first ordinal
/// without one.
async fn replay(owned: &Arc<OwnedRange>, checkpoint: (State, u64)) -> Result<(State, u64), LoadError> {
    let document = owned.document();
    let may_go_on = || owned.stopped().is_none();
    let (mut state, covered_to) = checkpoint;
    let Some((_, log)) = stream_for(&document, LOG) else {
        return Err(LoadError::Wrong("a range without its streams".to_owned()));
    };
    let mut ordinal = covered_to;
    for entry in log.extents.iter().filter(|entry| entry.ordinal >= covered_to) {
        let Some(mut reader) = owned.reader(entry) else { break };
        if entry.ordinal != ordinal {
            return Err(LoadError::Wrong(format!("extent {ordinal} of a log is not there: {log:?}")));
        }
        let limits = entry.limits.clone().unwrap_or_default().intersection(&document.keys);
        while let Some(part) = reader.next(may_go_on).await? {
            for record in decode_records(&part.body).iter().filter(|record| is_within(record.key, &limits)) {
                state.apply(record, entry.limits.is_none()).map_err(LoadError::Wrong)?;
            }
        }
        ordinal += 1;
    }
    Ok((state, ordinal))
}

impl Served {
    /// Reads a range.
    pub(crate) async fn load(owned: &Arc<OwnedRange>) -> Result<Arc<Self>, LoadError> {
        let checkpoint = read_checkpoint(owned).await?;
        let (state, _) = replay(owned, checkpoint.clone()).await?;
        Ok(Arc::new(Served {
            owned: owned.clone(),
            keys: owned.document().keys.clone(),
            durable: Mutex::new(state),
            checkpoint: Mutex::new(checkpoint),
            checkpointing: tokio::sync::Mutex::default(),
            queue: Mutex::default(),
            queued: Notify::new(),
            hangs: AtomicBool::new(false),
        }))
    }

    /// From now on its group commit hangs, as in a deadlock.
    pub(crate) fn hang(&self) {
        self.hangs.store(true, Ordering::Relaxed);
        self.queued.notify_one();
    }

    pub(crate) fn durable(&self) -> State {
        self.durable.lock().clone()
    }

    /// A read, if the range may answer one now.
    pub(crate) fn read(&self, key: u8) -> Option<Vec<WriteId>> {
        let read = || self.durable.lock().writes.get(&key).cloned().unwrap_or_default();
        self.owned.admits_reads().then(read)
    }

    /// A write. Whether it was done.
    pub(crate) async fn write(&self, key: u8, id: WriteId) -> Ending {
        let (reply, outcome) = oneshot::channel();
        {
            let mut queue = self.queue.lock();
            if queue.len() >= QUEUE_MAX || !self.owned.admits_writes() {
                return Ending::Refused;
            }
            queue.push_back(Waiting { key, id, reply });
        }
        self.queued.notify_one();
        outcome.await.unwrap_or(Ending::Unknown)
    }

    /// Makes writes durable, a part for each group, until the range stops.
    pub(crate) async fn commit_groups(self: Arc<Self>, server: Arc<Server>) {
        let document = self.owned.document();
        let Some((stream, _)) = stream_for(&document, LOG) else { return };
        let log = self.owned.log(stream);
        let sign = self.owned.watch_loop("a group commit");
        let mut decided = self.durable();
        loop {
            if self.hangs.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            sign.turned();
            let group: Vec<Waiting> = {
                let mut queue = self.queue.lock();
                let count = queue.len().min(GROUP_MAX);
                queue.drain(..count).collect()
            };
            if group.is_empty() {
                if self.owned.stopped().is_some() {
                    return Box::new(sign).end();
                }
                let queued = std::pin::pin!(self.queued.notified());
                let stopped = std::pin::pin!(self.owned.until_stopped());
                let asked = std::pin::pin!(sign.asked());
                select(select(queued, asked), stopped).await;
                continue;
            }
            let before = decided.clone();
            let records: Vec<_> = group.iter().map(|write| decided.decide(write.key, write.id)).collect();
            let appended = going_round(&sign, log.append(encode_records(&records).into())).await;
            match appended {
                Ok(appended) => {
                    let served = self.clone();
                    server.gate.spawn(async move {
                        let outcome = appended.durable().await;
                        if outcome.is_ok() {
                            let mut durable = served.durable.lock();
                            for record in &records {
                                durable.writes.entry(record.key).or_default().push(record.id);
                                durable.last = record.id;
                            }
                        }
                        answer(group, &outcome);
                    });
                }
                Err(error) => {
                    decided = before;
                    answer(group, &Err(error));
                }
            }
        }
    }

    /// Writes a checkpoint of what is sealed, and trims the log to it.
    pub(crate) async fn checkpoint(&self) -> Result<(), LoadError> {
        let _one_at_a_time = self.checkpointing.lock().await;
        let checkpoint = self.checkpoint.lock().clone();
        let (state, covered_to) = replay(&self.owned, checkpoint).await?;
        let document = self.owned.document();
        let streams = stream_for(&document, CHECKPOINT).zip(stream_for(&document, LOG));
        let Some(((checkpoints, _), (log, entry))) = streams else { return Ok(()) };
        let has_sealed = entry.extents.iter().any(|extent| extent.ordinal < covered_to);
        if covered_to <= entry.trim.ordinal || !has_sealed {
            return Ok(());
        }
        let Ok(appended) = self.owned.log(checkpoints).append(state.encode(covered_to).into()).await else {
            return Ok(());
        };
        let ordinal = appended.header().place.ordinal;
        if appended.durable().await.is_err() {
            return Ok(());
        }
        *self.checkpoint.lock() = (state, covered_to);
        let trims = [(log, covered_to), (checkpoints, ordinal)]
            .map(|(stream, ordinal)| Change::Trim { stream, to: TrimPoint { ordinal, offset: 0 } });
        // Refused while an extent before it has no recorded length: the next checkpoint trims.
        match self.owned.change(&trims).await {
            Ok(_) | Err(StampError::Change(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits for `work`, and shows meanwhile that the loop goes round.
async fn going_round<T>(sign: &LoopSign, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        sign.turned();
        if let Either::Left((done, _)) = select(work.as_mut(), sign.asked()).await {
            return done;
        }
    }
}

fn answer(group: Vec<Waiting>, outcome: &Result<(), AppendError>) {
    let ending = match outcome {
        Ok(()) => Ending::Acknowledged,
        Err(AppendError { may_be_there: true, .. }) => Ending::Unknown,
        Err(_) => Ending::Refused,
    };
    for write in group {
        // A client that went away does not need to know.
        let _ = write.reply.send(ending);
    }
}
