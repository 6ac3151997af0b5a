//! Group commit: while one group of operations is being appended and synced, the next one gathers.
//!
//! What always holds: groups are appended in the order of their versions. When an append fails, every
//! operation that waits fails, their rows leave the memory table, and unless it was refused for certain (the
//! disk is full, no file can be opened, it is too large) the range takes no more writes, because nobody knows
//! whether the group is in the log. It takes no more either when the task that commits a group ends without
//! an outcome.

use crate::commit_log;
use crate::error::PartitionError;
use crate::lease::{choose_late_answer, going_round};
use crate::range_partition::commit_pipeline::CommitPipeline;
use crate::range_partition::range_tree::Standing;
use crate::range_partition::range_tree::pending::{Outcome, Pending, Teller};
use base::LoopSign;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use stream::Location;
use tokio::sync::oneshot;

/// The group commit's task; ends when the range is closed and owes nothing.
pub(crate) async fn run(pipeline: Arc<CommitPipeline>) {
    let name = format!("the group commit of range {} of {}", pipeline.core.id, pipeline.core.table.name());
    let sign = pipeline.core.shared.life.lease.watch_loop(&name);
    // One that was broken off serves nobody any more, so it counts as one that hangs.
    if go_round(&pipeline, sign.as_deref()).await == LoopEnd::Closed
        && let Some(sign) = sign
    {
        sign.end();
    }
}

/// How the loop has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopEnd {
    Closed,
    BrokenOff,
}

/// Gathers groups where requests run, and has them committed where the journal is written.
async fn go_round(pipeline: &Arc<CommitPipeline>, sign: Option<&dyn LoopSign>) -> LoopEnd {
    // Two buffers take turns: fresh memory for each group would have to be zeroed, some of it in the serial
    // section.
    let mut spare = Vec::new();
    loop {
        let group = {
            let mut serial = pipeline.core.serial.lock();
            if serial.pending.waiting_count == 0 && serial.pending.group.is_empty() {
                if matches!(serial.standing, Standing::Gone | Standing::Closed(_)) {
                    return LoopEnd::Closed;
                }
                // Idle ranges, of which there may be many, keep none.
                serial.pending.group = Vec::new();
                None
            } else {
                Some(serial.pending.take(std::mem::take(&mut spare)))
            }
        };
        match group {
            // It has nothing to append: behind the journal it would wait for the syncs of other ranges.
            Some(group) if group.group.is_empty() => spare = pipeline.commit(group).await,
            Some(group) => {
                let (done, memory) = oneshot::channel();
                let commits = commit_groups(pipeline.clone(), group, done);
                pipeline.core.shared.streams.spawn_beside_journal("group-commit", Box::pin(commits));
                // However long the append takes: what it waits for has bounds of its own.
                match going_round(sign, memory).await {
                    Ok(memory) => spare = memory,
                    Err(_) => {
                        pipeline.break_off();
                        return LoopEnd::BrokenOff;
                    }
                }
            }
            None => {
                spare = Vec::new();
                going_round(sign, pipeline.core.log.wake.notified()).await;
            }
        }
        pipeline.gather().await;
    }
}

/// Commits a group and, as long as enough operations have gathered for another one meanwhile, that one too;
/// then returns the memory.
async fn commit_groups(pipeline: Arc<CommitPipeline>, mut group: Pending, done: oneshot::Sender<Vec<u8>>) {
    loop {
        let spare = pipeline.commit(group).await;
        let mut serial = pipeline.core.serial.lock();
        if serial.pending.waiting_count < GATHERED_ENOUGH_COUNT {
            drop(serial);
            // Nobody waits for it if the process ends.
            let _ = done.send(spare);
            return;
        }
        group = serial.pending.take(spare);
    }
}

/// A memory table goes on in the log's extent of the one before as long as that has fewer bytes: an extent
/// costs a few syncs, and ranges that share the memory budget with many have small tables.
const LOG_EXTENT_SIZE_BYTES_MIN: u64 = 4 << 20;

/// The same for groups, where a load reads them one by one from far away.
const LOG_EXTENT_GROUPS_MIN: u64 = 128;

/// Groups after which a range has looked whether its table has too many.
const GROUPS_PER_LOOK: u64 = 64;

/// With room for so many memory tables more, space is not running out. A table takes its size twice, in the
/// log and in its checkpoint, and up to three wait for their flushes when the disk is full: theirs begin
/// after that.
const ROOMY_TABLE_COUNT: u64 = 8;

/// A larger group may go past the journal, which would hold up its thread, where groups are committed, for
/// another sync.
const SMALL_GROUP_SIZE_BYTES_MAX: usize = 512 << 10;

/// A buffer that has grown beyond this is returned.
const SPARE_SIZE_BYTES_MAX: usize = 1 << 20;

/// The memory of a group that was appended, emptied; none if it is large, or somebody still holds it.
fn emptied(group: Bytes) -> Vec<u8> {
    let Ok(mut group) = group.try_into_mut() else { return Vec::new() };
    group.clear();
    if group.capacity() <= SPARE_SIZE_BYTES_MAX { group.into() } else { Vec::new() }
}

/// Times that a group waits for requests that are ready to run, at most.
const GATHER_ROUND_COUNT_MAX: usize = 16;

/// A group of this many operations waits for no more: while it is synced, the others' requests keep the cores
/// busy. With all requests in one group the cores would wait for the disk, and the disk for them.
const GATHERED_ENOUGH_COUNT: usize = 16;

impl CommitPipeline {
    /// Lets requests that are ready to run join the next group, as long as more come: fewer, larger syncs. A
    /// lone requester waits for nobody.
    async fn gather(&self) {
        let mut gathered = self.core.serial.lock().pending.waiting_count;
        for _ in 0..GATHER_ROUND_COUNT_MAX {
            if gathered >= GATHERED_ENOUGH_COUNT {
                return;
            }
            tokio::task::yield_now().await;
            let waiting = self.core.serial.lock().pending.waiting_count;
            if waiting == gathered {
                return;
            }
            gathered = waiting;
        }
    }

    /// Makes a group durable, tells its outcome and returns the memory that it took.
    async fn commit(&self, mut group: Pending) -> Vec<u8> {
        let bytes = Bytes::from(std::mem::take(&mut group.group));
        // A group of refusals only waits for the groups before it.
        let appended = if bytes.is_empty() { Ok(()) } else { self.append_and_show(&bytes, &group).await };
        match appended {
            Ok(()) => group.teller.tell(Ok(())),
            Err(error) => self.take_back(&bytes, &group.teller, error),
        }
        emptied(bytes)
    }

    /// Makes the bytes of a group durable and its rows visible.
    async fn append_and_show(&self, bytes: &Bytes, group: &Pending) -> Outcome {
        let (clock, metrics) = (&self.core.shared.clock, &self.core.shared.metrics);
        let began_at = clock.monotonic();
        let appended = self.append_group(bytes.clone()).await;
        if matches!(appended, Err(PartitionError::DiskFull)) {
            self.core.shared.was_refused_space.store(true, Ordering::Release);
        }
        let location = appended?;
        // Before the lease is looked at: who has this alone may have it longer than the lease lasts.
        let _shown = self.core.shared.life.shown.read();
        if !self.core.has_lease() {
            // Another owner may have read the log before this group, or with it.
            return Err(choose_late_answer(true));
        }
        metrics.commit.record_duration(clock.monotonic().saturating_sub(began_at));
        metrics.committed_bytes.add(bytes.len() as u64);
        self.note_group(location);
        let show = || {
            if let Some(last) = group.last_version {
                self.core.log.visible.store(last.0, Ordering::Release);
            }
        };
        match &self.data {
            Some(data) => data.show(group.grown_bytes, show),
            None => show(),
        }
        Ok(())
    }

    /// A group has its place; if a table has so many that a load would have to read for long, it is flushed.
    fn note_group(&self, location: Location) {
        let groups = {
            let mut positions = self.core.log.positions.lock();
            positions.note(location, self.core.visible());
            positions.table_groups()
        };
        let memory = &self.core.shared.memory;
        if memory.bounds_log_groups() && groups.is_multiple_of(GROUPS_PER_LOOK) {
            self.core.shared.maintenance.wake_flush();
        }
    }

    /// Each memory table gets extents of the log for itself: once it is flushed they are deleted, most of the
    /// time before the stream layer has written them anywhere but to its journal. A small one goes on in the
    /// extent of the table before it, unless space is running out: there each flush must free as much as
    /// it takes, and in one large extent all would stay until the last table behind it is flushed, for which
    /// there would be no space any more.
    async fn begin_log_extent(&self) {
        let (streams, log) = (&self.core.shared.streams, &self.core.names.log);
        let last = streams.stat(log).ok().and_then(|stat| stat.extents.last().copied());
        let Some((extent, size_bytes @ 1..)) = last else { return };
        let far_from_full =
            ROOMY_TABLE_COUNT.saturating_mul(self.core.shared.settings.memory_table_size_bytes);
        // Whoever takes a range far away walks over all parts of an open extent.
        let is_short = !self.core.shared.memory.bounds_log_groups()
            || self.core.log.positions.lock().extent_groups() < LOG_EXTENT_GROUPS_MIN;
        if size_bytes < LOG_EXTENT_SIZE_BYTES_MIN
            && is_short
            && !streams.is_scarce()
            && streams.has_room_for(far_from_full).await
        {
            return;
        }
        if let Err(error) = streams.seal(log, self.core.owner, extent).await {
            tracing::warn!(%log, %error, "an extent of the commit log could not be ended");
        }
    }

    async fn append_group(&self, group: Bytes) -> Result<Location, PartitionError> {
        let (log, owner) = (&self.core.names.log, self.core.owner);
        if self.core.log.begins_table.swap(false, Ordering::AcqRel) {
            self.begin_log_extent().await;
        }
        let locations = if group.len() > SMALL_GROUP_SIZE_BYTES_MAX {
            self.core.shared.data_writer.append(log, owner, vec![group]).await?
        } else {
            self.core.shared.streams.append(log, owner, vec![group]).await?
        };
        locations
            .first()
            .copied()
            .ok_or_else(|| PartitionError::Storage("an append without a place".to_owned()))
    }

    /// The task that was to commit a group has ended without an outcome, as by a panic. Nobody knows whether
    /// the group is in the log: its operations have that outcome, and those on top of it get the same.
    fn break_off(&self) {
        let error = PartitionError::OutcomeUnknown("the group commit broke off".to_owned());
        tracing::error!(
            table = self.core.table.name(),
            id = self.core.id,
            "{error}; no more writes are taken until the next start"
        );
        let mut serial = self.core.serial.lock();
        let gathered = std::mem::take(&mut serial.pending);
        serial.standing.close(&error);
        drop(serial);
        self.core.tell_waiting_writers();
        gathered.teller.tell(Err(error));
    }

    /// Fails the group and everything that was decided on top of it.
    fn take_back(&self, group: &[u8], teller: &Teller, mut error: PartitionError) {
        tracing::error!(table = self.core.table.name(), %error, "a group of operations could not be made durable");
        let mut serial = self.core.serial.lock();
        let gathered = std::mem::take(&mut serial.pending);
        let tree = self.core.tree();
        for group in [group, &gathered.group] {
            match commit_log::rows_of(group) {
                Ok(rows) => rows.iter().for_each(|(version, key)| {
                    tree.memory_tables().for_each(|memory| memory.remove(key, *version));
                }),
                // It was encoded a moment ago. Its rows are still there, so nobody may be shown them.
                Err(malformed) => {
                    error = PartitionError::Storage(format!(
                        "{error}; the group could not be taken back: {malformed}"
                    ));
                }
            }
        }
        if error.changed_nothing() {
            // Nothing of the group is in the log and its rows are gone. Its versions are not used again: a
            // memory table that was frozen meanwhile may claim to reach up to them. An operation that had
            // seen the rows has not asked the checkpoints for them: it must.
            self.core.tree.store(Arc::new(tree.with_taken_back()));
            self.core.log.visible.store(serial.last_version.0, Ordering::Release);
        } else {
            serial.standing.close(&error);
        }
        drop(serial);
        // Writers that wait for a flush must learn that there may be none.
        self.core.tell_waiting_writers();
        teller.tell(Err(error.clone()));
        gathered.teller.tell(Err(error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_group_serves_the_next() {
        for spare_bytes in [0, 100] {
            let mut group = Vec::with_capacity(1000 + spare_bytes);
            group.resize(1000, 7);
            let place = group.as_ptr();
            let group = Bytes::from(group);
            drop(group.clone());
            let emptied = emptied(group);
            assert_eq!((emptied.as_ptr(), emptied.len()), (place, 0));
            assert!(emptied.capacity() >= 1000);
        }
        let group = Bytes::from(vec![7; 1000]);
        let held = group.clone();
        assert_eq!(emptied(group).capacity(), 0);
        assert_eq!(held, vec![7; 1000]);
        assert_eq!(emptied(vec![7; SPARE_SIZE_BYTES_MAX + 1].into()).capacity(), 0);
    }
}
