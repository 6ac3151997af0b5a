//! The journal's one writer: takes what waits, writes it as one record, syncs once, then makes it visible and
//! replies.
//!
//! What always holds: a reply leaves after the sync of the record that holds its entry. Entries are applied
//! in the order of the record. After a failed write or sync nothing is written any more.

use super::journal_metrics::JournalMetrics;
use super::layout::{KIND_GROUP, SEGMENT_COUNT};
use super::record_memory::RecordMemory;
use super::recover::put_header;
use super::synced_mark::{SyncPosition, SyncedMark};
use super::table_copies::{TableCopies, TableCopy};
use crate::block::{BLOCK_HEADER_SIZE, put_block};
use crate::error::StreamError;
use crate::extent_node::drain::Drain;
use crate::extent_node::extent::Extent;
use crate::extent_node::large_run::LargeRun;
use crate::extent_node::state::{Entry, ExtentState, ExtentTable, put_append_header};
use crate::extent_node::stop::Stop;
use crate::ids::{ExtentId, Location};
use crate::owner::{OWNER_SIZE, Owner};
use crate::record::{END_MARK_SIZE, EncodedRecord, RECORD_HEADER_SIZE, RecordBuilder, padded_size};
use crate::sealed::ExtentDigest;
use crate::space::Space;
use base::codec::Encode;
use base::{Clock, DiskFile};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, mpsc, oneshot};

/// Where a request's outcome goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StreamError>>;

/// Requests taken into one group at most.
const GROUP_REQUEST_COUNT_MAX: usize = 1024;
/// A group takes no further request once its record has this many bytes.
const GROUP_SIZE_BYTES_MAX: usize = 4 << 20;
/// After this long without a request, and at the end, an empty group marks that all before it was durable, so
/// that later damage to the last group is distinct from a torn write.
const IDLE_MARK_AFTER: Duration = Duration::from_millis(20);
/// Bytes of an entry besides blocks, at most.
const ENTRY_OVERHEAD_MAX: usize = 1 + 8 + 8 + 8 + 10 + 8 + FENCE_SIZE;
/// Bytes of the fence in front of the first append of a new owner.
const FENCE_SIZE: usize = 1 + 8 + OWNER_SIZE + 1;

/// Requests of the node to its journal.
pub(crate) enum Request {
    /// Append blocks to an extent.
    Append {
        extent: Arc<Extent>,
        owner: Owner,
        blocks: Vec<Bytes>,
        /// The extent's tail, held until the new length shows.
        tail: OwnedRwLockReadGuard<()>,
        reply: Reply<Vec<Location>>,
    },
    /// `size` bytes at `offset` are written and synced in the extent's file.
    Length {
        extent: Arc<Extent>,
        owner: Owner,
        offset: u64,
        size: u64,
        /// Of the extent with those bytes.
        digest: Option<ExtentDigest>,
        /// Of which it is a part; it has the extent's tail.
        run: Arc<LargeRun>,
        reply: Reply<()>,
    },
    /// The extent's empty file is there.
    Create { extent: Arc<Extent>, owner: Owner, reply: Reply<()> },
    /// Make this the owner and, if `freeze`, freeze; replies with the length and the digest.
    Fence { extent: Arc<Extent>, owner: Owner, freeze: bool, reply: Reply<ExtentState> },
    /// The extent's end is no longer in doubt.
    AcceptEnd { extent: Arc<Extent>, reply: Reply<ExtentState> },
    /// The extent is gone.
    Delete { extent: ExtentId, reply: Reply<()> },
    /// Finish: everything synced in the extents, nothing owed.
    Close { reply: oneshot::Sender<()> },
}

/// What happens to an entry of the group once the group is durable.
enum Effect {
    Appended {
        extent: Arc<Extent>,
        state: ExtentState,
        offset: u64,
        start: usize,
        end: usize,
        locations: Vec<Location>,
        _tail: OwnedRwLockReadGuard<()>,
        reply: Reply<Vec<Location>>,
    },
    Changed {
        extent: Arc<Extent>,
        state: ExtentState,
        _run: Option<Arc<LargeRun>>,
        reply: Reply<()>,
    },
    Fenced {
        extent: Arc<Extent>,
        state: ExtentState,
        reply: Reply<ExtentState>,
    },
    Deleted {
        extent: ExtentId,
        reply: Reply<()>,
    },
}

/// The journal's open files.
pub(crate) struct JournalFiles {
    pub(crate) segments: [Arc<dyn DiskFile>; SEGMENT_COUNT],
    pub(crate) segment_size_bytes: u64,
    pub(crate) table_copies: TableCopies,
    pub(crate) synced_mark: SyncedMark,
    pub(crate) metrics: JournalMetrics,
}

/// The newest segment, and where it ends.
pub(crate) struct NewestSegment {
    /// Index of its file.
    pub(crate) file: usize,
    pub(crate) generation: u64,
    /// Of the oldest segment that a start needs.
    pub(crate) oldest_generation: u64,
    /// Of the last record.
    pub(crate) sequence: u64,
    /// Where the next record starts in the file.
    pub(crate) offset: u64,
}

/// The journal's state while it is written.
pub(crate) struct JournalWriter {
    pub(crate) files: JournalFiles,
    pub(crate) newest: NewestSegment,
    /// Bytes that were written since the start, of all segments.
    pub(crate) position: u64,
    pub(crate) table: ExtentTable,
    pub(crate) drain: Arc<Drain>,
    /// The drain's ticket for all bytes of the generations before the present one.
    pub(crate) owed: u64,
    pub(crate) stop: Arc<Stop>,
    pub(crate) space: Arc<Space>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the newest record is a group with entries.
    pub(crate) unmarked: bool,
    pub(crate) memory: RecordMemory,
}

/// A writer's task that panicked may have left a record half done: nothing is written after it, the drain's
/// syncs included.
struct StopOnPanic(Arc<Stop>);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.writes(StreamError::WritesStopped("the journal's task panicked".to_owned()));
        }
    }
}

impl JournalWriter {
    /// The writer's task: ends when the node closes or drops its sender.
    pub(crate) async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let _stops = StopOnPanic(self.stop.clone());
        let mut waiting = VecDeque::new();
        let mut taken = Vec::new();
        loop {
            if waiting.is_empty() {
                let idle = self.clock.sleep(IDLE_MARK_AFTER);
                tokio::select! {
                    biased;
                    count = requests.recv_many(&mut taken, GROUP_REQUEST_COUNT_MAX) => {
                        if count == 0 {
                            self.mark().await;
                            return self.drain.close();
                        }
                    }
                    () = idle, if self.unmarked => {
                        self.memory.release_unused();
                        self.mark().await;
                        continue;
                    }
                }
                waiting.extend(taken.drain(..));
            }
            if let Some(closed) = self.serve(&mut waiting).await {
                self.mark().await;
                self.drain.close();
                let mut progress = self.drain.progress();
                // An error means that the drain is gone, which is what closing waits for.
                let _ = progress.wait_for(|progress| progress.closed).await;
                self.note_clean_stop().await;
                let _ = closed.send(());
                return;
            }
            // Tasks on this thread that got their replies run first, so that their next appends share a
            // record: else two of them would take turns, each with a sync of its own.
            base::give_way().await;
        }
    }

    /// From now on no byte of the journal is needed, if everything is in its extent.
    async fn note_clean_stop(&self) {
        if self.drain.owes_nothing()
            && self.stop.check().is_ok()
            && let Err(error) = self.files.table_copies.write(&self.table_copy(true)).await
        {
            self.stop.writes(error);
        }
    }

    pub(super) fn table_copy(&self, is_clean: bool) -> TableCopy {
        TableCopy {
            generation: self.newest.generation,
            sequence: self.newest.sequence,
            is_clean,
            oldest_generation: self.newest.oldest_generation,
            segment_size_bytes: self.files.segment_size_bytes,
            table: self.table.clone(),
        }
    }

    /// Writes an empty group behind the last one.
    async fn mark(&mut self) {
        if self.unmarked
            && let Err(error) = self.write_group(RecordBuilder::new(), true).await
        {
            self.stop.writes(error);
        }
    }

    /// Serves one group from the front of `waiting`. Returns the reply to a close request that was met.
    async fn serve(&mut self, waiting: &mut VecDeque<Request>) -> Option<oneshot::Sender<()>> {
        let room = match self.make_room(waiting).await {
            Ok(room) => room,
            Err(error) => {
                if error != StreamError::DiskFull {
                    self.stop.writes(error.clone());
                }
                let close = waiting.iter().position(|request| matches!(request, Request::Close { .. }));
                waiting.drain(..close.unwrap_or(waiting.len())).for_each(|request| refuse(request, &error));
                return take_close(waiting);
            }
        };
        let size: usize = waiting.iter().take(GROUP_REQUEST_COUNT_MAX).map(entry_size).sum();
        let mut record = self.memory.record((1 + size).min(room));
        record.body().put_u8_field(KIND_GROUP);
        let mut effects = Vec::with_capacity(waiting.len());
        while let Some(request) = waiting.front() {
            let size = record.body().len() - RECORD_HEADER_SIZE + entry_size(request);
            if matches!(request, Request::Close { .. }) || padded_size(size) > room {
                break;
            }
            if let Some(request) = waiting.pop_front()
                && let Some(effect) = self.add(request, record.body())
            {
                effects.push(effect);
            }
        }
        if !effects.is_empty() {
            self.files.metrics.group_size.record(effects.len() as u64);
            match self.write_group(record, false).await {
                Ok(bytes) => self.publish(effects, &bytes),
                Err(error) => {
                    self.stop.writes(error.clone());
                    effects.into_iter().for_each(|effect| effect.fail(&error));
                }
            }
        }
        take_close(waiting)
    }

    /// Bytes that the next record may have; switches to the next segment when the first request does not fit.
    async fn make_room(&mut self, waiting: &VecDeque<Request>) -> Result<usize, StreamError> {
        self.stop.check()?;
        let first = waiting.front().map_or(0, |request| padded_size(1 + entry_size(request)));
        // Pages stay free for the mark and for what stands behind it.
        let kept_free = padded_size(0) + END_MARK_SIZE;
        let left = |writer: &Self| {
            ((writer.files.segment_size_bytes - writer.newest.offset) as usize).saturating_sub(kept_free)
        };
        if first > left(self) {
            self.switch().await?;
            if first > left(self) {
                return Err(StreamError::TooLarge {
                    size_bytes: first as u64,
                    size_bytes_max: left(self) as u64,
                });
            }
        }
        Ok(left(self).min(GROUP_SIZE_BYTES_MAX.max(first)))
    }

    /// Starts the next generation in the file that is free once all but the present generation is drained.
    async fn switch(&mut self) -> Result<(), StreamError> {
        let ticket = self.drain.request();
        let owed = self.owed;
        self.drain.hurry(owed);
        let mut progress = self.drain.progress();
        let reached =
            progress.wait_for(|progress| progress.synced >= owed || progress.disk_full || progress.closed);
        let reached = *reached.await.map_err(|_| StreamError::Closing)?;
        self.stop.check()?;
        if reached.synced < owed {
            // The ticket is not used: smaller appends may still fit in the present segment.
            return Err(StreamError::DiskFull);
        }
        self.make_room_for_copies().await?;
        self.owed = ticket;
        self.newest.file = (self.newest.file + 1) % SEGMENT_COUNT;
        self.newest.oldest_generation = self.newest.generation;
        self.newest.generation += 1;
        self.start_segment().await
    }

    async fn make_room_for_copies(&mut self) -> Result<(), StreamError> {
        let size_bytes = self.table_copy(false).encode().bytes.len() as u64;
        let given_up = self.space.given_up();
        match self.files.table_copies.make_room(size_bytes).await {
            Err(StreamError::DiskFull) if self.space.give_up(given_up).await => {
                self.files.table_copies.make_room(size_bytes).await
            }
            made => made,
        }
    }

    /// Writes the first segment's header record and the copies of its table.
    pub(crate) async fn begin(&mut self) -> Result<(), StreamError> {
        match self.make_room_for_copies().await {
            // The other one was damaged. It is mended before the next segment begins.
            Err(StreamError::DiskFull)
                if self.files.table_copies.has_room_in_one(&self.table_copy(false)) => {}
            made => made?,
        }
        self.start_segment().await
    }

    /// Writes the present segment's header record and the copies of its table, for which there is space.
    async fn start_segment(&mut self) -> Result<(), StreamError> {
        let mut record = RecordBuilder::new();
        put_header(&mut record, self.newest.oldest_generation, &self.table);
        self.newest.offset = 0;
        self.files.metrics.segments.increment();
        self.write(record).await?;
        self.files.table_copies.write(&self.table_copy(false)).await
    }

    pub(super) async fn write_group(
        &mut self,
        mut record: RecordBuilder,
        mark: bool,
    ) -> Result<Bytes, StreamError> {
        if mark {
            record.body().put_u8_field(KIND_GROUP);
        }
        let bytes = self.write(record).await?;
        self.unmarked = !mark;
        Ok(bytes)
    }

    async fn write(&mut self, record: RecordBuilder) -> Result<Bytes, StreamError> {
        self.stop.check()?;
        let EncodedRecord { bytes, len } = record.finish(self.newest.generation, self.newest.sequence + 1);
        if self.newest.offset + bytes.len() as u64 > self.files.segment_size_bytes {
            return Err(StreamError::WritesStopped(
                "the table of extents has outgrown the journal segment".to_owned(),
            ));
        }
        let file = &self.files.segments[self.newest.file];
        let began_at = self.clock.monotonic();
        file.write_at(self.newest.offset, bytes.clone())
            .await
            .map_err(|error| StreamError::write("journal", &error))?;
        file.sync_data().await.map_err(|error| StreamError::write("journal", &error))?;
        let JournalMetrics { sync, written_bytes, .. } = &self.files.metrics;
        sync.record_duration(self.clock.monotonic().saturating_sub(began_at));
        written_bytes.add(len as u64);
        self.newest.sequence += 1;
        self.files
            .synced_mark
            .note(SyncPosition { generation: self.newest.generation, sequence: self.newest.sequence })
            .await;
        self.newest.offset += len as u64;
        self.position += len as u64;
        Ok(bytes)
    }

    /// Adds a request's entry to the record's body, or refuses the request.
    fn add(&mut self, request: Request, body: &mut BytesMut) -> Option<Effect> {
        match request {
            Request::Append { extent, owner, blocks, tail, reply } => {
                let epoch = owner.epoch;
                let state = match self.admit(extent.id, owner, body) {
                    Ok(state) => state,
                    Err(error) => return refuse_with(reply, error),
                };
                let size: usize = blocks.iter().map(|block| BLOCK_HEADER_SIZE + block.len()).sum();
                put_append_header(body, extent.id, epoch, state.length, size);
                let start = body.len();
                let mut locations = Vec::with_capacity(blocks.len());
                for block in &blocks {
                    let offset = state.length + (body.len() - start) as u64;
                    locations.push(Location { extent: extent.id, offset, len: block.len() as u32 });
                    put_block(body, extent.id, offset, block);
                }
                let end = body.len();
                let entry = Entry::Append {
                    extent: extent.id,
                    epoch,
                    offset: state.length,
                    blocks: &body[start..end],
                };
                let state = match self.table.apply(&entry).map(|()| self.table.extents[&extent.id]) {
                    Ok(state) => state,
                    Err(error) => return refuse_with(reply, error),
                };
                let offset = state.length - size as u64;
                Some(Effect::Appended { extent, state, offset, start, end, locations, _tail: tail, reply })
            }
            Request::Length { extent, owner, offset, size, digest, run, reply } => {
                let entry = Entry::Length { extent: extent.id, epoch: owner.epoch, offset, size, digest };
                let admitted = self.admit(extent.id, owner, body);
                match admitted.and_then(|_| self.change(&entry, extent.id, body)) {
                    Ok(state) => Some(Effect::Changed { extent, state, _run: Some(run), reply }),
                    Err(error) => refuse_with(reply, error),
                }
            }
            Request::Create { extent, owner, reply } => {
                match self.change(&Entry::Create { extent: extent.id, owner }, extent.id, body) {
                    Ok(state) => Some(Effect::Changed { extent, state, _run: None, reply }),
                    Err(error) => refuse_with(reply, error),
                }
            }
            Request::Fence { extent, owner, freeze, reply } => {
                match self.change(&Entry::Fence { extent: extent.id, owner, freeze }, extent.id, body) {
                    Ok(state) => Some(Effect::Fenced { extent, state, reply }),
                    Err(error) => refuse_with(reply, error),
                }
            }
            Request::AcceptEnd { extent, reply } => {
                match self.change(&Entry::AcceptEnd { extent: extent.id }, extent.id, body) {
                    Ok(state) => Some(Effect::Fenced { extent, state, reply }),
                    Err(error) => refuse_with(reply, error),
                }
            }
            Request::Delete { extent, reply } => {
                let entry = Entry::Delete { extent };
                if let Err(error) = self.table.apply(&entry) {
                    return refuse_with(reply, error);
                }
                entry.encode(body);
                Some(Effect::Deleted { extent, reply })
            }
            // Never at this place: the group ends before it.
            Request::Close { .. } => None,
        }
    }

    /// The extent's facts, if an append of `owner` may extend it. One that is newer than the extent's owner
    /// becomes that first.
    fn admit(
        &mut self,
        extent: ExtentId,
        owner: Owner,
        body: &mut BytesMut,
    ) -> Result<ExtentState, StreamError> {
        let state = self.table.check_append(extent, owner)?;
        if state.owner == owner {
            return Ok(state);
        }
        self.change(&Entry::Fence { extent, owner, freeze: false }, extent, body)
    }

    fn change(
        &mut self,
        entry: &Entry<'_>,
        extent: ExtentId,
        body: &mut BytesMut,
    ) -> Result<ExtentState, StreamError> {
        self.table.apply(entry)?;
        entry.encode(body);
        self.table.extents.get(&extent).copied().ok_or(StreamError::NoExtent(extent))
    }

    /// Makes a durable group visible, then replies.
    fn publish(&self, effects: Vec<Effect>, record: &Bytes) {
        for effect in &effects {
            match effect {
                Effect::Appended { extent, state, offset, start, end, .. } => {
                    extent.publish(*state, Some((*offset, record.slice(*start..*end))));
                    self.drain.add(extent, offset + (end - start) as u64, self.position);
                }
                Effect::Changed { extent, state, .. } | Effect::Fenced { extent, state, .. } => {
                    extent.publish(*state, None);
                }
                Effect::Deleted { extent, .. } => self.drain.forget(*extent),
            }
        }
        // A requester that was dropped is no reason to stop.
        for effect in effects {
            match effect {
                Effect::Appended { locations, reply, .. } => drop(reply.send(Ok(locations))),
                Effect::Changed { reply, .. } | Effect::Deleted { reply, .. } => drop(reply.send(Ok(()))),
                Effect::Fenced { state, reply, .. } => drop(reply.send(Ok(state))),
            }
        }
    }
}

impl Effect {
    fn fail(self, error: &StreamError) {
        match self {
            Effect::Appended { reply, .. } => drop(reply.send(Err(error.clone()))),
            Effect::Changed { reply, .. } | Effect::Deleted { reply, .. } => {
                drop(reply.send(Err(error.clone())))
            }
            Effect::Fenced { reply, .. } => drop(reply.send(Err(error.clone()))),
        }
    }
}

/// Bytes of the request's entry, at most.
fn entry_size(request: &Request) -> usize {
    match request {
        Request::Append { blocks, .. } => {
            ENTRY_OVERHEAD_MAX + blocks.iter().map(|block| BLOCK_HEADER_SIZE + block.len()).sum::<usize>()
        }
        _ => ENTRY_OVERHEAD_MAX,
    }
}

fn take_close(waiting: &mut VecDeque<Request>) -> Option<oneshot::Sender<()>> {
    match waiting.pop_front() {
        Some(Request::Close { reply }) => Some(reply),
        Some(other) => {
            waiting.push_front(other);
            None
        }
        None => None,
    }
}

fn refuse_with<T>(reply: Reply<T>, error: StreamError) -> Option<Effect> {
    drop(reply.send(Err(error)));
    None
}

fn refuse(request: Request, error: &StreamError) {
    match request {
        Request::Append { reply, .. } => drop(reply.send(Err(error.clone()))),
        Request::Length { reply, .. } | Request::Create { reply, .. } | Request::Delete { reply, .. } => {
            drop(reply.send(Err(error.clone())));
        }
        Request::Fence { reply, .. } | Request::AcceptEnd { reply, .. } => {
            drop(reply.send(Err(error.clone())));
        }
        Request::Close { reply } => drop(reply.send(())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::panic::AssertUnwindSafe;

    #[test]
    fn a_panic_of_the_journal_s_task_stops_writing() {
        let stop = Arc::new(Stop::default());
        let task = async {
            let _stops = StopOnPanic(stop.clone());
            futures_util::future::ready(()).await;
            panic!("in the midst of a record");
        };
        assert!(AssertUnwindSafe(task).catch_unwind().now_or_never().expect("no wait").is_err());
        assert!(stop.check().is_err());
    }

    #[test]
    fn an_end_of_the_journal_s_task_does_not() {
        let stop = Arc::new(Stop::default());
        drop(StopOnPanic(stop.clone()));
        assert_eq!(stop.check(), Ok(()));
    }
}
