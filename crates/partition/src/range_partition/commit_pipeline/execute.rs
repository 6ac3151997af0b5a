//! The serial section: operations of a range are decided one after the other, against durable and not yet
//! durable rows, and queued for group commit.
//!
//! What a decision needs from checkpoints is fetched before the section, many operations at a time; inside it
//! the fetched rows are only brought up to date from memory. What always holds: a reply leaves after
//! everything its decision saw or changed is durable, refusals included, and while the lease holds.

use crate::checkpoint::{Aside, Caching, HashedKey, OverflowReads};
use crate::commit_log;
use crate::decider::Decider;
use crate::error::PartitionError;
use crate::key::{KeyRange, partition_prefix};
use crate::lease::choose_late_answer;
use crate::memory::memory_table::Found;
use crate::memory::write_pace::Turn;
use crate::operation::{ObjectTable, Read, Row, RowChange, RowPart, RowVersion, Rows};
use crate::range_partition::commit_pipeline::CommitPipeline;
use crate::range_partition::data::names_new_bytes;
use crate::range_partition::executed::Executed;
use crate::range_partition::range_tree::pending::Waiting;
use crate::range_partition::range_tree::{Serial, Standing};
use crate::range_partition::reader::{WALK_YIELD_ROW_COUNT, find_in_checkpoints, find_in_memory, to_row};
use crate::tree::Tree;
use crate::tree::merging_iterator::{MergingIterator, merge_over};
use base::Ticks;
use bytes::Bytes;
use parking_lot::MutexGuard;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::BLOCK_PAYLOAD_SIZE_MAX;

/// With so many bytes of changes that wait for one group no further operation is decided.
const PENDING_SIZE_BYTES_MAX: usize = 32 << 20;
/// Bytes that a group may have: it is one block of the log.
const GROUP_SIZE_BYTES_MAX: usize = BLOCK_PAYLOAD_SIZE_MAX;
/// Bytes that an operation's changes may have: alone they fit into a group.
const OPERATION_SIZE_BYTES_MAX: usize = GROUP_SIZE_BYTES_MAX - (1 << 10);
/// Rows of checkpoints that are fetched for a range read besides those it asks for, in case operations that
/// are decided meanwhile delete some: at first, and at most.
const RANGE_READ_SPARE_COUNT: usize = 32;
const RANGE_READ_SPARE_COUNT_MAX: usize = 64 << 10;

/// An operation fetches anew so many times because changes have left memory meanwhile, at most. Each flush is
/// one such time.
const STALE_COUNT_MAX: usize = 32;

/// An operation that gives space back waits so long for some.
const SPACE_WAIT_MAX: Duration = Duration::from_secs(5);
/// So long where there is some, but just enough for flushes, merges and collections.
const FLOOR_WAIT_MAX: Duration = Duration::from_secs(2);
/// Where that was in vain, nobody waits for that any more for so long.
const FLOOR_WAIVED_FOR: Duration = Duration::from_secs(10);
/// And looks this often whether there is any.
const SPACE_POLL_AFTER: Duration = Duration::from_millis(50);

/// What checkpoints hold for one read.
enum Fetched {
    /// A point: the newest change that a checkpoint knows.
    Point(Option<Found>),
    /// A range: its first rows by key, complete up to `end` (exclusive; `None`: all).
    Range { changes: BTreeMap<Bytes, Found>, end: Option<Bytes> },
}

/// What the serial section made of an operation.
enum Verdict {
    /// Other ranges take over.
    Moved,
    /// Nothing was changed.
    Reply,
    /// Once everything so far is durable.
    Wait { waiting: Waiting, has_changed: bool },
    /// Changes have left memory since the fetch: fetch again.
    Stale,
    /// Range reads ran into deletions: fetch more.
    Short,
}

/// When the serial section was entered.
#[derive(Clone, Copy)]
struct Entered {
    wall: Ticks,
    monotonic: Duration,
}

impl CommitPipeline {
    /// Decides `operation`, whose reads are `reads`. They come back if other ranges take over. One that gives
    /// space back is not refused at once where there is none: others that did may be about to.
    pub(crate) async fn execute(
        &self,
        operation: &mut dyn Decider,
        reads: Vec<Read>,
    ) -> Result<Executed<(), Vec<Read>>, PartitionError> {
        match self.execute_once(operation, reads).await {
            // In a box: else each request would have room for it.
            Err(PartitionError::DiskFull) if operation.reclaims() != Some(false) => {
                Box::pin(self.execute_once_there_is_space(operation)).await
            }
            outcome => outcome,
        }
    }

    /// What was refused for certain is tried again and again.
    async fn execute_once_there_is_space(
        &self,
        operation: &mut dyn Decider,
    ) -> Result<Executed<(), Vec<Read>>, PartitionError> {
        let clock = &*self.core.shared.clock;
        let began_at = clock.monotonic();
        loop {
            let Some(reads) = operation.reads() else { return Err(PartitionError::DiskFull) };
            self.core.shared.maintenance.wake_for_space();
            clock.sleep(SPACE_POLL_AFTER).await;
            let waited_for = clock.monotonic().saturating_sub(began_at);
            if waited_for >= FLOOR_WAIT_MAX {
                // Perhaps nothing is dead yet, and it is what makes something so. Others need not find that
                // out again.
                let until = clock.monotonic() + FLOOR_WAIVED_FOR;
                self.floor_waived_until_ms.store(until.as_millis() as u64, Ordering::Relaxed);
            }
            match self.execute_once(operation, reads).await {
                Err(PartitionError::DiskFull)
                    if operation.reclaims() != Some(false) && waited_for < SPACE_WAIT_MAX => {}
                outcome => return outcome,
            }
        }
    }

    async fn execute_once(
        &self,
        operation: &mut dyn Decider,
        reads: Vec<Read>,
    ) -> Result<Executed<(), Vec<Read>>, PartitionError> {
        check_reads(&reads, &self.core.range)?;
        let _admitted = self
            .admission
            .acquire()
            .await
            .map_err(|_| PartitionError::Unavailable("range is closed".to_owned()))?;
        let mut turn = self.wait_for_room(operation.is_collection()).await?;
        let mut spare = RANGE_READ_SPARE_COUNT;
        let mut stale_count = 0;
        let mut aside = Aside::default();
        loop {
            let tree = self.core.tree.load();
            let size_bytes_max = self.core.shared.settings.operation_read_size_bytes_max;
            let fetched = fetch(&tree, &reads, spare, size_bytes_max, &mut aside).await?;
            match self.decide(operation, &reads, &tree, fetched, turn.as_mut())? {
                Verdict::Moved => return Ok(Executed::Moved(reads)),
                Verdict::Reply => {
                    self.core.check_lease()?;
                    aside.keep_in(&self.core.shared.cache);
                    return Ok(Executed::Done(()));
                }
                Verdict::Wait { waiting, has_changed } => {
                    match has_changed {
                        true => drop(aside),
                        false => aside.keep_in(&self.core.shared.cache),
                    }
                    // Before the wait: after it they are no longer in the processor's cache, and trees that
                    // are held are what others have to load the slow way.
                    if operation.reclaims() != Some(true) {
                        operation.drop_operation();
                    }
                    drop((reads, tree, turn));
                    self.core.log.wake.notify_one();
                    let (clock, waits) = (&*self.core.shared.clock, &self.core.shared.metrics.log_wait);
                    let began_at = clock.monotonic();
                    waiting.await?;
                    waits.record_duration(clock.monotonic().saturating_sub(began_at));
                    self.core.check_lease().map_err(|_| choose_late_answer(has_changed))?;
                    return Ok(Executed::Done(()));
                }
                Verdict::Stale if stale_count >= STALE_COUNT_MAX => return Err(PartitionError::Busy),
                Verdict::Stale => stale_count += 1,
                Verdict::Short if spare >= RANGE_READ_SPARE_COUNT_MAX => return Err(PartitionError::Busy),
                Verdict::Short => spare = (spare * 4).min(RANGE_READ_SPARE_COUNT_MAX),
            }
        }
    }

    fn decide(
        &self,
        operation: &mut dyn Decider,
        reads: &[Read],
        fetched_from: &Arc<Tree>,
        fetched: Vec<Fetched>,
        turn: Option<&mut Turn<'_>>,
    ) -> Result<Verdict, PartitionError> {
        self.core.check_lease()?;
        let mut serial = self.enter();
        let memory = turn.map(|turn| (turn, self.core.tree.load().active.clone()));
        let before_bytes = memory.as_ref().map_or(0, |(_, active)| active.size_bytes());
        let clock = &*self.core.shared.clock;
        // In this order: the version is noted with a moment that is not before its wall clock's.
        let entered = Entered { wall: clock.now(), monotonic: clock.monotonic() };
        let verdict = self.decide_in(&mut serial, entered, operation, reads, fetched_from, fetched);
        if let Some((turn, active)) = memory {
            turn.written_bytes = active.size_bytes().saturating_sub(before_bytes);
        }
        self.load.note_serial_section(clock.monotonic().saturating_sub(entered.monotonic));
        verdict
    }

    /// Enters the serial section. Only who finds it taken looks at the clock.
    fn enter(&self) -> MutexGuard<'_, Serial> {
        if let Some(serial) = self.core.serial.try_lock() {
            return serial;
        }
        let clock = &*self.core.shared.clock;
        let began_at = clock.monotonic();
        let serial = self.core.serial.lock();
        let waited_for = clock.monotonic().saturating_sub(began_at);
        self.core.shared.metrics.lock_wait.record_duration(waited_for);
        serial
    }

    /// Inside the serial section.
    fn decide_in(
        &self,
        serial: &mut Serial,
        entered: Entered,
        operation: &mut dyn Decider,
        reads: &[Read],
        fetched_from: &Arc<Tree>,
        fetched: Vec<Fetched>,
    ) -> Result<Verdict, PartitionError> {
        match &serial.standing {
            Standing::Open => {}
            Standing::HandingOver | Standing::Gone => return Ok(Verdict::Moved),
            Standing::Closed(error) => return Err(error.clone()),
        }
        if serial.pending.size_bytes() > PENDING_SIZE_BYTES_MAX {
            return Err(PartitionError::Busy);
        }
        let tree = self.core.tree.load();
        if tree.fetch_epoch != fetched_from.fetch_epoch {
            return Ok(Verdict::Stale);
        }
        let mut found = Vec::with_capacity(reads.len());
        for (read, fetched) in reads.iter().zip(fetched) {
            match refresh(&tree, read, fetched) {
                Some(rows) => found.push(rows),
                None => return Ok(Verdict::Short),
            }
        }
        let now = self.time.now(entered.wall, entered.monotonic);
        let version = next_version(now, serial.last_version, serial.version_floor);
        let rows = Rows::new(found);
        let changes = operation.decide(&rows, version)?;
        let has_changed = !changes.is_empty();
        if has_changed {
            check_changes(&changes, &self.core.range)?;
            check_size(&changes, serial.pending.size_bytes())?;
            let is_scarce = self.core.shared.streams.is_scarce();
            // What a row of uploaded bytes takes is little, and they would be dead without it.
            let is_taken = has_space(is_scarce, operation.gives_back(), &changes)
                || self.data.is_some() && names_new_bytes(&changes, rows.all());
            if !is_taken || self.must_wait_for_space(operation) {
                return Err(PartitionError::DiskFull);
            }
            if let Some(data) = &self.data {
                serial.pending.grown_bytes += data.check_changes(&changes, rows.all())?;
            }
            serial.last_version = version;
            self.time.note(version, entered.monotonic);
            serial.pending.add(version, &changes);
            for change in changes {
                match change {
                    RowChange::Put { key, value } => tree.active.insert(key.as_bytes(), version, Some(value)),
                    RowChange::Delete { key } => tree.active.insert(key.as_bytes(), version, None),
                }
            }
            if tree.active.size_bytes() >= self.core.shared.settings.memory_table_size_bytes {
                self.core.tree.store(Arc::new(tree.with_active_frozen(version)));
                self.core.log.begins_table.store(true, Ordering::Release);
                self.core.shared.maintenance.wake_flush();
            } else if self.core.shared.memory.wants_flush() {
                self.core.shared.maintenance.wake_flush();
            }
        }
        if serial.last_version == self.core.visible() {
            return Ok(Verdict::Reply);
        }
        Ok(Verdict::Wait { waiting: serial.pending.wait(), has_changed })
    }
}

impl CommitPipeline {
    /// Whether what is free is for flushes, merges and collections.
    fn must_wait_for_space(&self, operation: &dyn Decider) -> bool {
        // The map is what hand-overs end with, and names no data; a collection has claimed its space.
        self.core.table != ObjectTable::PartitionMap
            && self.core.shared.streams.is_below_floor()
            && !operation.is_collection()
            && self.core.shared.clock.monotonic().as_millis() as u64
                >= self.floor_waived_until_ms.load(Ordering::Relaxed)
    }
}

/// Bytes of rows that may still be fetched for an operation.
struct Room {
    left: u64,
    size_bytes_max: u64,
}

impl Room {
    fn has(&self, size_bytes: usize) -> bool {
        size_bytes as u64 <= self.left
    }

    fn take(&mut self, size_bytes: usize) -> Result<(), PartitionError> {
        let size_bytes_max = self.size_bytes_max;
        let left = self.left.checked_sub(size_bytes as u64);
        self.left = left.ok_or(PartitionError::TooMuchToRead { size_bytes_max })?;
        Ok(())
    }
}

/// Asks the checkpoints for what the reads need and memory does not have.
async fn fetch(
    tree: &Tree,
    reads: &[Read],
    spare: usize,
    size_bytes_max: u64,
    aside: &mut Aside,
) -> Result<Vec<Fetched>, PartitionError> {
    let mut room = Room { left: size_bytes_max, size_bytes_max };
    let newest = RowVersion(u64::MAX);
    let mut fetched = Vec::with_capacity(reads.len());
    for read in reads {
        fetched.push(match read {
            Read::Point(key) | Read::Head(key) => {
                let part = if matches!(read, Read::Head(_)) { RowPart::Head } else { RowPart::Whole };
                let key = HashedKey::new(key.as_bytes());
                let in_memory = find_in_memory(tree, key, newest).is_some();
                let found =
                    if in_memory { None } else { find_in_checkpoints(tree, key, part, Some(aside)).await? };
                let value = found.as_ref().and_then(|found| found.value.as_ref());
                room.take(value.map_or(0, |value| key.bytes.len() + value.len()))?;
                Fetched::Point(found)
            }
            // In a box: else each request would have room for it.
            Read::Range { range, limit } => {
                Box::pin(fetch_range(tree, range, *limit, spare, &mut room)).await?
            }
        });
    }
    Ok(fetched)
}

/// The first `limit` rows, and up to `spare` more as far as there is room.
async fn fetch_range(
    tree: &Tree,
    range: &KeyRange,
    limit: usize,
    spare: usize,
    room: &mut Room,
) -> Result<Fetched, PartitionError> {
    let heads = &OverflowReads::None;
    let mut cursor =
        MergingIterator::over_checkpoints(&tree.checkpoints, range, Caching::Keep, heads).await?;
    let mut changes = BTreeMap::new();
    let mut walked: u64 = 0;
    let mut scratch = Vec::new();
    while let Some(row) = cursor.row() {
        walked += 1;
        if walked.is_multiple_of(WALK_YIELD_ROW_COUNT) {
            tokio::task::yield_now().await;
        }
        // A deletion is as good as nothing, and of other rows memory may say what became of them: so deleted
        // rows, however many and wherever, cost no further fetch.
        let newest = RowVersion(u64::MAX);
        if row.value.is_some() && find_in_memory(tree, HashedKey::new(row.key), newest).is_none() {
            let key = Bytes::copy_from_slice(row.key);
            if changes.len() == limit + spare {
                return Ok(Fetched::Range { changes, end: Some(key) });
            }
            // Only now, as its overflow may have to be read.
            let Some(row) = cursor.whole_row(&mut scratch).await? else { break };
            let value = row.value.unwrap_or_default();
            let size_bytes = key.len() + value.len();
            if changes.len() >= limit && !room.has(size_bytes) {
                return Ok(Fetched::Range { changes, end: Some(key) });
            }
            room.take(size_bytes)?;
            // A copy: what is shared with a block keeps all of that in memory.
            let value = Some(Bytes::copy_from_slice(value));
            changes.insert(key, Found { version: row.version, value });
        }
        cursor.step().await?;
    }
    Ok(Fetched::Range { changes, end: None })
}

/// What a read finds now: memory, not yet durable changes included, over what was fetched. `None`: not enough
/// was.
fn refresh(tree: &Tree, read: &Read, fetched: Fetched) -> Option<Vec<Row>> {
    let newest = RowVersion(u64::MAX);
    match (read, fetched) {
        (Read::Point(key) | Read::Head(key), Fetched::Point(fetched)) => {
            let found = find_in_memory(tree, HashedKey::new(key.as_bytes()), newest).or(fetched);
            Some(found.and_then(|found| to_row(key, found)).into_iter().collect())
        }
        (Read::Range { range, limit }, Fetched::Range { changes, end }) => {
            let cut = end.is_some();
            let complete = KeyRange { start: range.start.clone(), end: end.or_else(|| range.end.clone()) };
            let rows = merge_over(tree.memory_tables(), &complete, changes, *limit);
            (rows.len() == *limit || !cut).then_some(rows)
        }
        _ => None,
    }
}

/// The range's time, bumped when it stands still: newer than the last version and than the floor below which
/// a hand-over has copied everything.
fn next_version(now: Ticks, last: RowVersion, floor: RowVersion) -> RowVersion {
    RowVersion(now.0.max(last.max(floor).0 + 1))
}

/// Whether an operation may make these changes: while space is scarce only what gives some back may.
fn has_space(is_scarce: bool, gives_back: bool, changes: &[RowChange]) -> bool {
    !is_scarce || gives_back || changes.iter().all(|change| matches!(change, RowChange::Delete { .. }))
}

/// An operation reads only what this range can know: a foreign row would look as if it were not there.
fn check_reads(reads: &[Read], range: &KeyRange) -> Result<(), PartitionError> {
    let inside = |read: &Read| match read {
        Read::Point(key) | Read::Head(key) => range.contains(key.as_bytes()),
        Read::Range { range: read, .. } => range.covers(read),
    };
    if reads.iter().all(inside) { Ok(()) } else { Err(PartitionError::Operation("a read outside the range")) }
}

/// An operation's changes fit into a group, beside what waits there already. One that the log would refuse
/// must not get that far: everything that was decided beside it would fail with it.
fn check_size(changes: &[RowChange], pending_bytes: usize) -> Result<(), PartitionError> {
    let size_bytes = commit_log::operation_size_bytes_max(changes);
    if size_bytes > OPERATION_SIZE_BYTES_MAX {
        let (size_bytes, size_bytes_max) = (size_bytes as u64, OPERATION_SIZE_BYTES_MAX as u64);
        return Err(PartitionError::TooLarge { size_bytes, size_bytes_max });
    }
    // A group has a byte in front.
    if pending_bytes.max(1) + size_bytes > GROUP_SIZE_BYTES_MAX { Err(PartitionError::Busy) } else { Ok(()) }
}

/// An operation's changes lie in one partition name of this range.
fn check_changes(changes: &[RowChange], range: &KeyRange) -> Result<(), PartitionError> {
    let prefix =
        partition_prefix(changes[0].key().as_bytes()).ok_or(PartitionError::Operation("not a row key"))?;
    for change in changes {
        let key = change.key().as_bytes();
        if !key.starts_with(prefix) {
            return Err(PartitionError::Operation("changes of two partition names"));
        }
        if !range.contains(key) {
            return Err(PartitionError::Operation("a change outside the range"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RowKey;

    #[test]
    fn versions_rise_whatever_the_time_is() {
        for (now, last, floor, expected) in [
            (100, 50, 0, 100),
            (100, 100, 0, 101),
            (7, 100, 0, 101),
            (100, 50, 99, 100),
            (100, 50, 100, 101),
            (7, 50, 100, 101),
            (7, 200, 100, 201),
        ] {
            assert_eq!(next_version(Ticks(now), RowVersion(last), RowVersion(floor)), RowVersion(expected));
        }
    }

    #[test]
    fn an_operation_fits_into_a_group_or_is_refused() {
        let put = |size| {
            vec![RowChange::Put { key: RowKey::new("a", 1, "p", "r"), value: Bytes::from(vec![0; size]) }]
        };
        let overhead = commit_log::operation_size_bytes_max(&put(0));
        let largest = put(OPERATION_SIZE_BYTES_MAX - overhead);
        assert_eq!(check_size(&largest, 0), Ok(()));
        assert_eq!(check_size(&largest, 1 << 10), Ok(()));
        assert_eq!(check_size(&largest, (1 << 10) + 1), Err(PartitionError::Busy));
        let too_large = check_size(&put(OPERATION_SIZE_BYTES_MAX - overhead + 1), 0);
        assert!(matches!(too_large, Err(PartitionError::TooLarge { .. })), "{too_large:?}");
        let half = put(30 << 20);
        assert_eq!(
            check_size(&half, PENDING_SIZE_BYTES_MAX),
            Ok(()),
            "what may wait leaves room for as much"
        );
    }

    #[test]
    fn only_what_gives_space_back_is_taken_while_space_is_scarce() {
        let key = || RowKey::new("a", 1, "p", "r");
        let delete = || RowChange::Delete { key: key() };
        let put = || RowChange::Put { key: key(), value: Bytes::new() };
        for (is_scarce, gives_back, changes, expected) in [
            (false, false, vec![put()], true),
            (true, false, vec![put()], false),
            (true, false, vec![delete(), put()], false),
            (true, false, vec![delete(), delete()], true),
            (true, true, vec![put(), delete()], true),
        ] {
            let outcome = has_space(is_scarce, gives_back, &changes);
            assert_eq!(outcome, expected, "{is_scarce} {gives_back} {changes:?}");
        }
    }

    #[test]
    fn changes_stay_in_one_partition_name_of_the_range() {
        let put = |partition: &str| RowChange::Delete { key: RowKey::new("a", 1, partition, "r") };
        let range = KeyRange::container("a", 1);
        assert_eq!(check_changes(&[put("p"), put("p")], &range), Ok(()));
        assert!(check_changes(&[put("p"), put("q")], &range).is_err());
        assert!(check_changes(&[put("p")], &KeyRange::container("a", 2)).is_err());
    }
}
