//! Splits and merges of ranges: parents hand their rows over to heirs, by pointer.
//!
//! 1. The heirs' own streams are made, and the parents are flushed beside their writers.
//! 2. They flush and merge no more. One change to the streams lets the heirs share their checkpoints, and the
//!    heirs' metadata is written. What is only in the parents' memory is copied to the heirs' logs in rounds:
//!    each is smaller than the one before it, because it has only what was written meanwhile.
//! 3. The parents pause: operations wait. The last of their rows becomes durable and is copied.
//! 4. One operation of the partition map replaces the parents by the heirs, and is copied (`keep_map_copy`).
//!    **This is the moment.**
//! 5. The heirs serve, waiting operations go to them, the parents' streams go once they have no reader.
//!
//! What always holds: before 4 the heirs are left-overs that the next start removes, after it the parents
//! are. A hand-over that fails before 4 leaves the parents as they were; if it is unknown whether 4 happened,
//! the parents take no more writes until the next start, and so it is if its task ends before it does. Once
//! begun it does not end with its requester: it has a task of its own.

use super::keep_map_copy::MapError;
use super::owner::Owner;
use super::server::PartitionServer;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, partition_prefix};
use crate::map::partition_map::{ChangeMap, MapEntry};
use crate::map::routes::Routes;
use crate::operation::{ObjectTable, RowVersion};
use crate::pause::Pause;
use crate::range_partition::{Heir, RangePartition};
use base::Ticks;
use bytes::Bytes;
use futures_util::future::{join, join_all, join3};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::{Owner as RangeOwner, StreamChange};
use tokio::sync::oneshot;

/// Rounds of flushes before the rest is copied, at most: each finds what was written during the one before.
const FLUSH_ROUND_COUNT_MAX: usize = 3;
/// Bytes in memory at which no further round of flushes is worth it.
const FLUSHED_REST_SIZE_BYTES: u64 = 1 << 20;
/// Rounds in which the rest is copied while writers go on, at most.
const COPY_ROUND_COUNT_MAX: usize = 8;
/// A round that copied so little is the last one before the pause.
const COPIED_REST_SIZE_BYTES: u64 = 128 << 10;

/// What is older than this when a round ends was held up by one parent: the others' rows since then are not
/// copied yet.
const SETTLED_AGE_MAX: Duration = Duration::from_millis(20);
/// It is looked again after this long, for this long at most.
const SETTLED_POLL_AFTER: Duration = Duration::from_millis(1);
const SETTLED_WAIT_MAX: Duration = Duration::from_millis(500);

/// How the ranges of a table shall change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The range that owns this key becomes two, the second one starting at the key's partition name.
    Split(RowKey),
    /// The range that owns this key and the one after it become one.
    Merge(RowKey),
}

/// The ranges that are handed over, and what takes their place.
struct Plan {
    /// In key order.
    parents: Vec<Arc<RangePartition>>,
    /// What the heirs will own.
    ranges: Vec<KeyRange>,
}

/// How a hand-over ended, for parents that pause.
enum HandOverOutcome {
    Done(Pause),
    /// For certain nothing has changed.
    NotDone(PartitionError),
    Unknown(PartitionError),
}

impl HandOverOutcome {
    /// A hand-over whose change of the map ended with `error`.
    fn of_map(error: MapError) -> HandOverOutcome {
        match error {
            MapError::Unchanged(error) => HandOverOutcome::NotDone(error),
            // Not the error itself: a full disk, say, would look like one that passes.
            MapError::Unknown(error) => HandOverOutcome::Unknown(PartitionError::Unavailable(format!(
                "it is not known before the next start whether the partition map has changed: {error}"
            ))),
        }
    }
}

/// A hand-over under way. If it is dropped before its end (a panic), its progress is unknown: what waits for
/// the parents would wait for ever.
struct UnderWay<'a> {
    server: &'a PartitionServer,
    parents: &'a [Arc<RangePartition>],
    has_ended: bool,
}

impl UnderWay<'_> {
    /// The parents know how it ended.
    fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            let why = PartitionError::Unavailable("a split or merge of ranges broke off".to_owned());
            self.parents.iter().for_each(|parent| parent.fail(&why));
        }
        self.server.handed_over.notify_waiters();
    }
}

impl PartitionServer {
    /// Changes the ranges of `table`. False: there was nothing to change.
    pub(crate) async fn change_ranges(
        self: &Arc<Self>,
        table: ObjectTable,
        change: Change,
    ) -> Result<bool, PartitionError> {
        let (reply, outcome) = oneshot::channel();
        let server = self.clone();
        let task = async move {
            // A requester that went away does not matter.
            let _ = reply.send(server.run_change(table, &change).await);
        };
        // On a thread of its own: it flushes, which must not hold up connections.
        self.shared
            .spawner
            .spawn_dedicated("hand-over", Box::pin(task))
            .map_err(PartitionError::no_thread("hand-over"))?;
        outcome.await.unwrap_or_else(|_| Err(PartitionError::Unavailable("the hand-over stopped".to_owned())))
    }

    async fn run_change(&self, table: ObjectTable, change: &Change) -> Result<bool, PartitionError> {
        let mut next_range_id = self.next_range_id.lock().await;
        if self.closing.load(Ordering::Acquire) {
            return Err(PartitionError::Unavailable("the server is stopping".to_owned()));
        }
        let Some(Plan { parents, ranges }) = self.plan(table, change)? else { return Ok(false) };
        if self.shared.streams.is_scarce() {
            // It takes space and gives none back: what is left is for deletions.
            return Err(PartitionError::DiskFull);
        }
        // Each try that was refused would leave some more behind.
        self.remove_unnamed_ranges().await?;
        let ids = *next_range_id..*next_range_id + ranges.len() as u64;
        *next_range_id = ids.end;
        let began_at = self.shared.clock.monotonic();
        let pause = self.hand_over(&parents, ids.clone().zip(ranges).collect()).await?;
        let took_for = self.shared.clock.monotonic().saturating_sub(began_at);
        let mut counts = self.counts.lock();
        match change {
            Change::Split(_) => counts.splits += 1,
            Change::Merge(_) => counts.merges += 1,
        }
        if pause.total() > counts.longest_pause.total() {
            counts.longest_pause = pause;
        }
        drop(counts);
        tracing::info!(
            table = table.name(),
            ?change,
            parents = ?parents.iter().map(|parent| parent.id()).collect::<Vec<_>>(),
            heirs = ?ids,
            took_us = took_for.as_micros() as u64,
            pause_us = pause.total().as_micros() as u64,
            finished_us = pause.finished_for.as_micros() as u64,
            copied_bytes = pause.copied_bytes,
            map_changed_us = pause.map_changed_for.as_micros() as u64,
            started_us = pause.started_for.as_micros() as u64,
            "ranges have changed"
        );
        Ok(true)
    }

    /// The ranges that are handed over, and what takes their place. `None`: there is nothing to change.
    fn plan(&self, table: ObjectTable, change: &Change) -> Result<Option<Plan>, PartitionError> {
        if table == ObjectTable::PartitionMap {
            return Err(PartitionError::Operation("the partition map is one range"));
        }
        match change {
            Change::Split(key) => {
                let at =
                    partition_prefix(key.as_bytes()).ok_or(PartitionError::Operation("not a row key"))?;
                let at = Bytes::copy_from_slice(at);
                let parent = self.owner(table, &at)?;
                let KeyRange { start, end } = parent.range().clone();
                if start == at {
                    return Ok(None);
                }
                let halves = vec![KeyRange { start, end: Some(at.clone()) }, KeyRange { start: at, end }];
                Ok(Some(Plan { parents: vec![parent], ranges: halves }))
            }
            Change::Merge(key) => {
                let first = self.owner(table, key.as_bytes())?;
                let Some(middle) = first.range().end.clone() else { return Ok(None) };
                let second = self.owner(table, &middle)?;
                let whole = KeyRange { start: first.range().start.clone(), end: second.range().end.clone() };
                Ok(Some(Plan { parents: vec![first, second], ranges: vec![whole] }))
            }
        }
    }

    /// Replaces the parents by heirs of these ranges. Returns how long operations waited.
    async fn hand_over(
        &self,
        parents: &[Arc<RangePartition>],
        ranges: Vec<(u64, KeyRange)>,
    ) -> Result<Pause, PartitionError> {
        let table = parents[0].table();
        let ids: Vec<u64> = ranges.iter().map(|(id, _)| *id).collect();
        let under_way = UnderWay { server: self, parents, has_ended: false };
        let mut no_merges = Vec::with_capacity(parents.len());
        for parent in parents {
            no_merges.push(parent.hold_merges().await);
        }
        let mut ended = self.reserve_streams(table, &ids).await;
        if ended.is_ok() {
            ended = flush_most(parents).await;
        }
        let mut no_flushes = Vec::with_capacity(parents.len());
        for parent in parents {
            no_flushes.push(parent.hold_flushes().await);
        }
        let heirs = match ended {
            Ok(()) => self.prepare_heirs(parents, ranges).await,
            Err(error) => Err(error),
        };
        let ended = match heirs {
            Ok(heirs) => self.hand_over_paused(parents, heirs).await,
            Err(error) => HandOverOutcome::NotDone(error),
        };
        match &ended {
            HandOverOutcome::Done(_) => {}
            HandOverOutcome::NotDone(_) => parents.iter().for_each(|parent| parent.resume()),
            HandOverOutcome::Unknown(error) => parents.iter().for_each(|parent| parent.fail(error)),
        }
        under_way.end();
        drop((no_merges, no_flushes));
        match ended {
            HandOverOutcome::Done(pause) => Ok(pause),
            HandOverOutcome::NotDone(error) => {
                self.shared.maintenance.wake_flush();
                self.shared.maintenance.wake_compaction();
                self.remove_failed_heirs(ids.iter().map(|id| (table, *id))).await;
                Err(error)
            }
            HandOverOutcome::Unknown(error) => Err(error),
        }
    }

    /// Makes all that the heirs need and copies most of what is only in the parents' memory, while writers go
    /// on.
    async fn prepare_heirs(
        &self,
        parents: &[Arc<RangePartition>],
        ranges: Vec<(u64, KeyRange)>,
    ) -> Result<Vec<Heir>, PartitionError> {
        let shared = &self.shared;
        let mut heirs = Vec::with_capacity(ranges.len());
        for (id, range) in ranges {
            heirs.push(Heir::of(shared, parents, id, range).await?);
        }
        let changes: Vec<StreamChange> = heirs.iter().flat_map(Heir::checkpoint_shares).collect();
        let shares = shared.streams.multi_modify(&changes);
        // All come to their ends, or what is left behind would be removed while it is written.
        let (shares, written) =
            join(shares, join_all(heirs.iter().map(|heir| heir.write_metadata(shared)))).await;
        shares?;
        written.into_iter().collect::<Result<(), _>>()?;
        let waited_until = shared.clock.monotonic() + SETTLED_WAIT_MAX;
        let mut rounds_left = COPY_ROUND_COUNT_MAX;
        while rounds_left > 0 {
            // Versions of all parents are copied in their order, so none may come later that is older.
            let floor = RowVersion(shared.clock.now().0);
            let settled = parents.iter().map(|parent| parent.settle(floor)).min();
            let up_to = settled.unwrap_or(floor);
            let copies = join_all(heirs.iter_mut().map(|heir| heir.copy(shared, parents, up_to))).await;
            let copied_bytes: u64 = copies.into_iter().sum::<Result<_, _>>()?;
            let little = copied_bytes <= COPIED_REST_SIZE_BYTES;
            if little && is_behind(up_to, floor) && shared.clock.monotonic() < waited_until {
                // A parent that seldom writes has a group on its way, and no newer rows were copied.
                parents.iter().for_each(|parent| parent.hurry());
                shared.clock.sleep(SETTLED_POLL_AFTER).await;
                continue;
            }
            if little {
                break;
            }
            rounds_left -= 1;
        }
        Ok(heirs)
    }

    /// Pauses the parents, copies the last of their rows and makes the heirs their successors.
    async fn hand_over_paused(
        &self,
        parents: &[Arc<RangePartition>],
        mut heirs: Vec<Heir>,
    ) -> HandOverOutcome {
        let clock = &self.shared.clock;
        let paused_at = clock.monotonic();
        let copied_bytes = match self.finish_heirs(parents, &mut heirs).await {
            Ok(copied_bytes) => copied_bytes,
            Err(error) => return HandOverOutcome::NotDone(error),
        };
        let finished_at = clock.monotonic();
        let old: Vec<MapEntry> = parents
            .iter()
            .map(|parent| entry(parent, parent.id(), parent.range(), parent.named_owner()))
            .collect();
        let heir_entry = |heir: &Heir| entry(&parents[0], heir.id(), heir.range(), Some(heir.owner()));
        let new = heirs.iter().map(heir_entry).collect();
        match self.change_map(ChangeMap { old, new }).await {
            Ok(true) => {
                let changed_at = clock.monotonic();
                let heirs: Vec<_> = heirs.into_iter().map(|heir| heir.start(&self.shared, parents)).collect();
                self.publish(parents, &heirs);
                HandOverOutcome::Done(Pause {
                    finished_for: finished_at.saturating_sub(paused_at),
                    copied_bytes,
                    map_changed_for: changed_at.saturating_sub(finished_at),
                    started_for: clock.monotonic().saturating_sub(changed_at),
                })
            }
            Ok(false) => {
                let what = "the partition map does not hold the ranges that are served";
                HandOverOutcome::NotDone(PartitionError::Storage(what.to_owned()))
            }
            Err(error) => HandOverOutcome::of_map(error),
        }
    }

    /// Pauses the parents and completes the heirs, while what was decided becomes durable. Returns how many
    /// bytes of rows it copied.
    async fn finish_heirs(
        &self,
        parents: &[Arc<RangePartition>],
        heirs: &mut [Heir],
    ) -> Result<u64, PartitionError> {
        let shared = &self.shared;
        let mut decided = Vec::with_capacity(parents.len());
        for parent in parents {
            decided.push(parent.pause()?);
        }
        let newest = parents.iter().map(|parent| parent.last_version()).max();
        let newest = newest.unwrap_or(RowVersion(0));
        let data_shares: Vec<StreamChange> = heirs.iter().flat_map(Heir::data_shares).collect();
        let data_shared = async {
            if data_shares.is_empty() { Ok(()) } else { shared.streams.multi_modify(&data_shares).await }
        };
        // Rows that are not durable yet are copied, too: they will be, or the heirs come to nothing.
        let copies = join_all(heirs.iter_mut().map(|heir| heir.copy_last(shared, parents, newest)));
        // All come to their ends, or what is left behind would be removed while it is written.
        let (decided, copied, data_shared) = join3(join_all(decided), copies, data_shared).await;
        decided.into_iter().collect::<Result<(), _>>()?;
        let copied_bytes = copied.into_iter().sum::<Result<_, _>>()?;
        data_shared?;
        heirs.iter_mut().try_for_each(|heir| heir.open_data(shared, parents))?;
        Ok(copied_bytes)
    }

    /// Makes the streams that heirs don't share with anybody, with room for their first appends.
    async fn reserve_streams(&self, table: ObjectTable, ids: &[u64]) -> Result<(), PartitionError> {
        for id in ids {
            Heir::reserve_streams(&self.shared, table, *id).await?;
        }
        Ok(())
    }

    /// The heirs own the parents' keys from now on.
    fn publish(&self, parents: &[Arc<RangePartition>], heirs: &[Arc<RangePartition>]) {
        {
            // One change of ranges at a time: nothing else replaces the routes meanwhile.
            let mut next = Routes::clone(&self.routes.load());
            parents.iter().for_each(|parent| next.remove(parent.table(), &parent.range().start));
            let serving = |heir: &Arc<RangePartition>| Owner::Serving(heir.clone());
            heirs.iter().for_each(|heir| next.add(heir.table(), heir.range().clone(), serving(heir)));
            self.routes.store(Arc::new(next));
        }
        for parent in parents {
            parent.leave();
            self.shared.maintenance.retire(parent.clone());
        }
    }
}

/// Brings what is in the parents' memory to checkpoints, beside the writers, until what these have added
/// meanwhile is little.
async fn flush_most(parents: &[Arc<RangePartition>]) -> Result<(), PartitionError> {
    for _ in 0..FLUSH_ROUND_COUNT_MAX {
        for parent in parents {
            parent.flush_all().await?;
        }
        if parents.iter().map(|parent| parent.memory_bytes()).sum::<u64>() < FLUSHED_REST_SIZE_BYTES {
            break;
        }
    }
    Ok(())
}

/// Whether much may have been written since version `up_to`; `now` is the version that a change would have
/// now.
fn is_behind(up_to: RowVersion, now: RowVersion) -> bool {
    Ticks(up_to.0).plus(SETTLED_AGE_MAX) < Ticks(now.0)
}

fn entry(of: &RangePartition, id: u64, range: &KeyRange, owner: Option<RangeOwner>) -> MapEntry {
    MapEntry { table: of.table(), id, range: range.clone(), owner }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parents that went on after a map that has changed would serve beside their heirs at the next start.
    #[test]
    fn the_parents_go_on_only_if_the_map_is_as_it_was() {
        assert!(matches!(
            HandOverOutcome::of_map(MapError::Unchanged(PartitionError::Busy)),
            HandOverOutcome::NotDone(_)
        ));
        let ended = HandOverOutcome::of_map(MapError::Unknown(PartitionError::DiskFull));
        assert!(matches!(ended, HandOverOutcome::Unknown(PartitionError::Unavailable(_))));
    }

    #[test]
    fn only_what_a_parent_holds_up_for_long_is_behind() {
        let ticks = |time: Duration| RowVersion(Ticks(1000).plus(time).0);
        let now = ticks(Duration::from_secs(5));
        assert!(!is_behind(now, now));
        assert!(!is_behind(ticks(Duration::from_secs(9)), now), "a clock that was set back");
        assert!(!is_behind(ticks(Duration::from_secs(5) - SETTLED_AGE_MAX), now));
        assert!(is_behind(ticks(Duration::from_secs(4)), now));
    }
}
