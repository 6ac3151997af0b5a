//! The serial section: operations of a range are decided one after the other, against durable and not yet
//! durable rows, and queued for group commit.
//!
//! What a decision needs from checkpoints is fetched before the section, many operations at a time; inside it
//! the fetched rows are only brought up to date from memory. What always holds: a reply leaves after
//! everything its decision saw or changed is durable, refusals included, and while the lease holds.

use crate::checkpoint::Aside;
use crate::commit_log;
use crate::decider::Decider;
use crate::error::PartitionError;
use crate::key::{KeyRange, partition_prefix};
use crate::lease::choose_late_answer;
use crate::memory::write_pace::Turn;
use crate::operation::{ObjectTable, Read, RowChange, RowVersion, Rows};
use crate::range_partition::commit_pipeline::CommitPipeline;
use crate::range_partition::commit_pipeline::fetch::{Fetched, fetch, refresh};
use crate::range_partition::data::names_new_bytes;
use crate::range_partition::executed::Executed;
use crate::range_partition::range_tree::pending::Waiting;
use crate::range_partition::range_tree::{Serial, Standing};
use crate::tree::Tree;
use base::Ticks;
use parking_lot::MutexGuard;
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
            let fetched = fetch(&tree, &reads, spare, &self.core.shared.settings, &mut aside).await?;
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
                self.core.log.begin_table();
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
    use bytes::Bytes;

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
