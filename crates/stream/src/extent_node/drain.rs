//! Moves journaled bytes to their extents: late, so that what is deleted soon, as a commit log's extents are,
//! is written once and not twice; but before the journal wants a segment back, and when nothing comes any
//! more.
//!
//! What always holds: a journal segment is recycled only after every byte it holds was synced in its extent,
//! or the extent was deleted. A full disk costs its reserve, then makes the drain wait and try the write
//! again; a failed sync stops all writing, because it is unknown what the disk holds.

use super::extent::Extent;
use super::stop::Stop;
use crate::error::{StreamError, is_disk_full};
use crate::ids::ExtentId;
use crate::space::Space;
use base::{Clock, give_way};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Adjacent pending chunks are joined into writes of up to this many bytes.
const WRITE_SIZE_BYTES_MAX: usize = 256 << 10;
/// Journaled bytes that are due wait until there are this many: one large write is cheaper than many small
/// ones, and each wake-up of the drain costs the journal's requesters time. At most this share of a segment,
/// or the lag would be another.
const WAKE_SIZE_BYTES_MAX: u64 = 1 << 20;
const WAKE_OF_SEGMENT: u64 = 16;
/// Bytes are due once this share of a segment was journaled behind them. A segment is wanted back a whole one
/// later, so the rest of it is for the sync.
const LAG_OF_SEGMENT: (u64, u64) = (3, 4);
/// All is due when nothing was journaled for this long: memory is freed, and a start has less to recover.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// How long a drain that met a full disk waits before it tries again.
const DISK_FULL_RETRY_AFTER: Duration = Duration::from_millis(200);

pub(crate) struct Drain {
    queues: Mutex<Queues>,
    wake: Notify,
    progress: watch::Sender<Progress>,
    stop: Arc<Stop>,
    space: Arc<Space>,
    /// Bytes are due once so many were journaled behind them.
    lag_bytes: u64,
    /// They wait until so many more are due.
    wake_bytes: u64,
}

#[derive(Default)]
struct Queues {
    /// What is not written, in the journal's order: at most as many as two segments of the journal have
    /// appends.
    waiting: VecDeque<PendingBytes>,
    /// Where the journal is.
    position: u64,
    /// What the journal holds up to here shall be written now.
    due: u64,
    /// Extents that are being written, unless they were deleted meanwhile.
    in_flight: BTreeSet<ExtentId>,
    /// Extents with written, unsynced bytes.
    unsynced: BTreeMap<ExtentId, Arc<Extent>>,
    /// Tickets that were given out and not reached yet: at most as many as appends that found no space in the
    /// journal.
    tickets: VecDeque<Ticket>,
    /// The newest ticket's number.
    asked: u64,
    closing: bool,
}

/// Bytes of an extent that are journaled and not in its file.
struct PendingBytes {
    extent: Arc<Extent>,
    /// Where they end in the extent.
    end: u64,
    /// Where the record with the first of them ends in the journal, and where that with the last does.
    first_position: u64,
    position: u64,
}

/// All that the journal holds up to a position shall be synced.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    number: u64,
    position: u64,
}

/// How far the drain has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// All bytes that were added before this ticket was given out are synced in their extents.
    pub(crate) synced: u64,
    /// The last write found no space.
    pub(crate) disk_full: bool,
    /// The drain has ended.
    pub(crate) closed: bool,
}

impl Drain {
    /// A drain that owes nothing, for a journal with segments of this size.
    pub(crate) fn new(stop: Arc<Stop>, space: Arc<Space>, segment_size_bytes: u64) -> Self {
        let progress = watch::Sender::new(Progress::default());
        let (share, of) = LAG_OF_SEGMENT;
        let lag_bytes = segment_size_bytes / of * share;
        let wake_bytes = WAKE_SIZE_BYTES_MAX.min(segment_size_bytes / WAKE_OF_SEGMENT);
        Drain { queues: Mutex::default(), wake: Notify::new(), progress, stop, space, lag_bytes, wake_bytes }
    }

    /// The extent has more pending bytes, which end at `end`; the journal holds them up to `position`.
    pub(crate) fn add(&self, extent: &Arc<Extent>, end: u64, position: u64) {
        let mut queues = self.queues.lock();
        queues.position = position;
        // None may have bytes that the newest ticket is for and others: it would be due later than the
        // ticket.
        let since_ticket = queues.tickets.back().map_or(0, |ticket| ticket.position);
        match queues.waiting.back_mut() {
            Some(last)
                if last.extent.id == extent.id
                    && last.first_position > since_ticket
                    && position - last.first_position < self.wake_bytes =>
            {
                last.end = end;
                last.position = position;
            }
            last => {
                let is_first = last.is_none();
                let extent = extent.clone();
                queues.waiting.push_back(PendingBytes { extent, end, first_position: position, position });
                if is_first {
                    // The drain rests until it is notified, and would not see that nothing follows.
                    self.wake.notify_one();
                }
            }
        }
        // Where space is running out, what is still to be written must not be more than the reserve is for.
        let lag_bytes = if self.space.is_scarce() { 0 } else { self.lag_bytes };
        let due = position.saturating_sub(lag_bytes);
        if due >= queues.due + self.wake_bytes {
            queues.due = due;
            let first = queues.waiting.front().map(|waiting| waiting.position);
            let ticket = queues.tickets.front().map(|ticket| ticket.position);
            if first.into_iter().chain(ticket).any(|position| position <= due) {
                self.wake.notify_one();
            }
        }
    }

    /// The extent is deleted: what waits for it is not needed.
    pub(crate) fn forget(&self, extent: ExtentId) {
        let mut queues = self.queues.lock();
        queues.waiting.retain(|waiting| waiting.extent.id != extent);
        queues.in_flight.remove(&extent);
        queues.unsynced.remove(&extent);
    }

    /// Requests a sync of all bytes added so far. It is done once [`Progress::synced`] has reached the
    /// returned ticket. Bytes that are added later need another.
    pub(crate) fn request(&self) -> u64 {
        let mut queues = self.queues.lock();
        let position = queues.position;
        if queues.tickets.back().is_none_or(|ticket| ticket.position < position) {
            queues.asked += 1;
            let number = queues.asked;
            queues.tickets.push_back(Ticket { number, position });
        }
        queues.asked
    }

    /// Makes everything up to this ticket due: a task waits for it.
    pub(crate) fn hurry(&self, ticket: u64) {
        let mut queues = self.queues.lock();
        let asked = queues.tickets.iter().take_while(|asked| asked.number <= ticket).last().copied();
        if let Some(asked) = asked {
            queues.due = queues.due.max(asked.position);
            self.wake.notify_one();
        }
    }

    /// Whether everything that was added is synced in its extent.
    pub(crate) fn owes_nothing(&self) -> bool {
        let queues = self.queues.lock();
        queues.waiting.is_empty() && queues.unsynced.is_empty()
    }

    /// Sync all, then end.
    pub(crate) fn close(&self) {
        self.queues.lock().closing = true;
        self.wake.notify_one();
    }

    /// A receiver that follows the drain's progress.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The drain's task.
    pub(crate) async fn run(self: Arc<Self>, clock: Arc<dyn Clock>) {
        loop {
            let given_up = self.space.given_up();
            match self.pass().await {
                Ok(true) => break,
                Ok(false) => self.rest(&*clock).await,
                Err(StreamError::DiskFull) if self.space.give_up(given_up).await => {}
                // The journal holds what could not be written: the next start writes it.
                Err(StreamError::DiskFull) if self.queues.lock().closing => break,
                Err(StreamError::DiskFull) => {
                    self.progress.send_modify(|progress| progress.disk_full = true);
                    clock.sleep(DISK_FULL_RETRY_AFTER).await;
                }
                Err(error) => {
                    self.stop.writes(error);
                    break;
                }
            }
        }
        self.progress.send_modify(|progress| progress.closed = true);
    }

    /// Until there may be something to do.
    async fn rest(&self, clock: &dyn Clock) {
        let position = {
            let queues = self.queues.lock();
            (!queues.waiting.is_empty()).then_some(queues.position)
        };
        let Some(position) = position else { return self.wake.notified().await };
        tokio::select! {
            biased;
            () = self.wake.notified() => {}
            () = clock.sleep(IDLE_AFTER) => {
                let mut queues = self.queues.lock();
                if queues.position == position {
                    queues.due = position;
                }
            }
        }
    }

    /// Writes what is due, syncs what tickets request. True if the drain shall end.
    async fn pass(&self) -> Result<bool, StreamError> {
        let (batch, due, reached, closing) = {
            let mut queues = self.queues.lock();
            if queues.closing {
                queues.due = queues.position;
            }
            let due = queues.due;
            let batch: BTreeMap<ExtentId, (Arc<Extent>, u64)> = queues
                .waiting
                .iter()
                .take_while(|waiting| waiting.position <= due)
                .map(|waiting| (waiting.extent.id, (waiting.extent.clone(), waiting.end)))
                .collect();
            queues.in_flight = batch.keys().copied().collect();
            let reached = queues.tickets.iter().take_while(|ticket| ticket.position <= due).last().copied();
            (batch, due, reached, queues.closing)
        };
        for (extent, end) in batch.values() {
            self.write_pending(extent, *end).await?;
        }
        if self.progress.borrow().disk_full {
            self.progress.send_modify(|progress| progress.disk_full = false);
        }
        let unsynced = {
            let mut queues = self.queues.lock();
            // One record has appends to several extents: some of its may have come since.
            let is_written = |waiting: &&PendingBytes| {
                let written = batch.get(&waiting.extent.id);
                waiting.position <= due && written.is_some_and(|(_, end)| waiting.end <= *end)
            };
            let written = queues.waiting.iter().take_while(is_written).count();
            queues.waiting.drain(..written);
            let syncs = closing || reached.is_some();
            if syncs { std::mem::take(&mut queues.unsynced) } else { BTreeMap::new() }
        };
        for extent in unsynced.into_values() {
            self.stop.sync(&extent).await?;
        }
        let mut queues = self.queues.lock();
        if let Some(reached) = reached {
            queues.tickets.retain(|ticket| ticket.number > reached.number);
            self.progress.send_modify(|progress| progress.synced = reached.number);
        }
        let owes = queues.closing && (!closing || !queues.waiting.is_empty());
        if owes {
            self.wake.notify_one();
        }
        Ok(closing && !owes)
    }

    async fn write_pending(&self, extent: &Arc<Extent>, end: u64) -> Result<(), StreamError> {
        let chunks = extent.pending_below(end);
        for run in adjacent_runs(&chunks) {
            let offset = run[0].0;
            extent.file.write_at(offset, joined(run)).await.map_err(|error| {
                if is_disk_full(&error) {
                    StreamError::DiskFull
                } else {
                    StreamError::write(&format!("extent {}", extent.id), &error)
                }
            })?;
            give_way().await;
        }
        extent.written(&chunks);
        let mut queues = self.queues.lock();
        // Else it was deleted in the meantime.
        if queues.in_flight.remove(&extent.id) {
            queues.unsynced.insert(extent.id, extent.clone());
        }
        Ok(())
    }
}

/// Cuts chunks, sorted by offset, into runs that touch and are small enough for one write.
fn adjacent_runs(chunks: &[(u64, Bytes)]) -> impl Iterator<Item = &[(u64, Bytes)]> {
    let mut size = 0;
    chunks.chunk_by(move |(offset, bytes), (next, following)| {
        size += bytes.len();
        let joins = offset + bytes.len() as u64 == *next && size + following.len() <= WRITE_SIZE_BYTES_MAX;
        if !joins {
            size = 0;
        }
        joins
    })
}

fn joined(run: &[(u64, Bytes)]) -> Bytes {
    if let [(_, only)] = run {
        return only.clone();
    }
    let mut all = BytesMut::with_capacity(run.iter().map(|(_, bytes)| bytes.len()).sum());
    run.iter().for_each(|(_, bytes)| all.extend_from_slice(bytes));
    all.freeze()
}

#[cfg(test)]
mod tests {
    use super::super::state::ExtentState;
    use super::*;
    use crate::owner::Owner;
    use crate::settings::StreamSettings;
    use base::{Environment, OpenMode};
    use futures_util::FutureExt;
    use sim::World;
    use std::pin::pin;

    const SEGMENT_SIZE_BYTES: u64 = 8 << 20;

    async fn drain(env: &Environment) -> Drain {
        let space = Space::open(env, &StreamSettings::tiny()).await.unwrap();
        Drain::new(Arc::default(), space, SEGMENT_SIZE_BYTES)
    }

    async fn extent(env: &Environment, id: u64) -> Arc<Extent> {
        let file = env.disk.open(&format!("extent {id}"), OpenMode::CreateNew).await.unwrap();
        Arc::new(Extent::new(ExtentId(id), file, ExtentState::empty(Owner::default())))
    }

    /// The next so many bytes of the extent are in the journal up to `position`.
    fn add(drain: &Drain, extent: &Arc<Extent>, size_bytes: u64, position: u64) {
        let offset = extent.state().length;
        let end = offset + size_bytes;
        let state = ExtentState { length: end, ..extent.state() };
        extent.publish(state, Some((offset, Bytes::from(vec![7; size_bytes as usize]))));
        drain.add(extent, end, position);
    }

    fn synced(drain: &Drain) -> u64 {
        drain.progress().borrow().synced
    }

    /// Those that were added after it went into the entry of those before: it was reached without the former.
    #[test]
    fn a_ticket_is_for_all_before_it() {
        let lives = |env: Environment, _| async move {
            let (drain, one, other) = (drain(&env).await, extent(&env, 1).await, extent(&env, 2).await);
            // One record with both.
            add(&drain, &other, 10, 4096);
            add(&drain, &one, 10, 4096);
            let ticket = drain.request();
            assert_eq!(drain.request(), ticket, "nothing came in between");
            add(&drain, &one, 10, 8192);
            let next = drain.request();
            drain.pass().await.unwrap();
            assert!(synced(&drain) < ticket && one.file.size().await.unwrap() == 0, "nothing is due");
            drain.hurry(ticket);
            drain.pass().await.unwrap();
            assert_eq!((synced(&drain), one.pending_below(99).len()), (ticket, 1));
            assert_eq!((one.file.size().await.unwrap(), other.file.size().await.unwrap()), (10, 10));
            drain.hurry(next);
            drain.pass().await.unwrap();
            assert_eq!((synced(&drain), one.pending_below(99).len()), (next, 0));
        };
        World::new(1).run(lives).unwrap();
    }

    #[test]
    fn what_comes_while_others_are_written_is_not_forgotten() {
        let lives = |env: Environment, _| async move {
            let (drain, one, other) = (drain(&env).await, extent(&env, 1).await, extent(&env, 2).await);
            add(&drain, &one, 10, 4096);
            let ticket = drain.request();
            drain.hurry(ticket);
            {
                let mut pass = pin!(drain.pass());
                // It has written and yields.
                while one.file.size().now_or_never().is_none_or(|size| size.unwrap() == 0) {
                    assert!(pass.as_mut().now_or_never().is_none());
                    tokio::task::yield_now().await;
                }
                // Of the same record.
                add(&drain, &other, 10, 4096);
                pass.await.unwrap();
            }
            drain.close();
            assert!(drain.pass().await.unwrap(), "it has nothing more to do");
            assert_eq!((other.pending_below(99).len(), other.file.size().await.unwrap()), (0, 10));
        };
        World::new(2).run(lives).unwrap();
    }

    #[test]
    fn bytes_are_due_three_quarters_of_a_segment_later() {
        let lives = |env: Environment, _| async move {
            let (drain, extent) = (drain(&env).await, extent(&env, 1).await);
            for position in 1..=64 {
                add(&drain, &extent, 10, position << 20);
                drain.pass().await.unwrap();
                assert_eq!(extent.pending_below(9999).len() as u64, position.min(6), "at {position} MiB");
            }
        };
        World::new(3).run(lives).unwrap();
    }

    /// A mebibyte was awaited where segments have less: nothing was ever due there.
    #[test]
    fn bytes_of_small_segments_are_due_as_late_in_proportion() {
        const SMALL_SEGMENT_SIZE_BYTES: u64 = 64 << 10;
        let lives = |env: Environment, _| async move {
            let space = Space::open(&env, &StreamSettings::tiny()).await.unwrap();
            let drain = Drain::new(Arc::default(), space, SMALL_SEGMENT_SIZE_BYTES);
            let extent = extent(&env, 1).await;
            for position in 1..=32 {
                add(&drain, &extent, 10, position * SMALL_SEGMENT_SIZE_BYTES / 16);
                drain.pass().await.unwrap();
                assert_eq!(extent.pending_below(9999).len() as u64, position.min(12), "at {position}/16");
            }
        };
        World::new(3).run(lives).unwrap();
    }

    #[test]
    fn what_is_deleted_is_not_written_and_holds_up_no_ticket() {
        let lives = |env: Environment, _| async move {
            let (drain, one, other) = (drain(&env).await, extent(&env, 1).await, extent(&env, 2).await);
            add(&drain, &one, 10, 4096);
            add(&drain, &other, 10, 8192);
            let ticket = drain.request();
            drain.forget(ExtentId(1));
            drain.hurry(ticket);
            drain.pass().await.unwrap();
            assert_eq!(synced(&drain), ticket);
            assert_eq!((one.file.size().await.unwrap(), other.file.size().await.unwrap()), (0, 10));
        };
        World::new(4).run(lives).unwrap();
    }

    #[test]
    fn runs_join_what_touches() {
        let chunk = |offset: u64, len: usize| (offset, Bytes::from(vec![0; len]));
        let chunks = [
            chunk(0, 10),
            chunk(10, 5),
            chunk(20, 5),
            chunk(25, WRITE_SIZE_BYTES_MAX),
            chunk(25 + (1 << 20), 1),
        ];
        let runs: Vec<usize> = adjacent_runs(&chunks).map(<[_]>::len).collect();
        assert_eq!(runs, [2, 1, 1, 1]);
        assert_eq!(joined(&chunks[..2]).len(), 15);
    }
}
