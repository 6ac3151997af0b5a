//! Splits and merges of ranges: parents hand their rows over to heirs, by pointer.
//!
//! 1. The parents are flushed beside their writers, and the heirs' own streams are made.
//! 2. They pause: operations wait.
//! 3. One change to the streams lets the heirs share the parents' checkpoints.
//! 4. Meanwhile the heirs' metadata is written, and to their logs the small rest that is only in the parents' memory.
//! 5. One operation of the partition map replaces the parents by the heirs. **This is the moment.**
//! 6. The heirs serve, waiting operations go to them, the parents' streams go once nobody reads them.
//!
//! What always holds: before 5 the heirs are left-overs that the next start removes, after it the parents are. A
//! hand-over that fails before 5 leaves the parents as they were; if nobody knows whether 5 happened, the parents
//! take no more writes until the next start. Once begun it does not end with its requester: it has a task of its own.

use super::PartitionServer;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, partition_prefix};
use crate::operation::ObjectTable;
use crate::partition_map::MapEntry;
use crate::range_partition::{Heir, RangePartition};
use crate::routes::Routes;
use bytes::Bytes;
use futures_util::future::{join, join_all};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::StreamChange;
use tokio::sync::oneshot;

/// How the ranges of a table shall change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The range that owns this key becomes two, the second one starting at the key's partition name.
    Split(RowKey),
    /// The range that owns this key and the one after it become one.
    Merge(RowKey),
}

/// Who hands over which ranges.
struct Plan {
    /// In key order.
    parents: Vec<Arc<RangePartition>>,
    /// What the heirs will own.
    ranges: Vec<KeyRange>,
}

/// Why the parents pause no longer.
enum Ended {
    Done(Vec<Arc<RangePartition>>),
    /// For certain nothing has changed.
    NotDone(PartitionError),
    Unknown(PartitionError),
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
        self.shared.spawner.spawn_dedicated("hand-over", Box::pin(task));
        outcome.await.unwrap_or_else(|_| Err(PartitionError::Unavailable("the hand-over stopped".to_owned())))
    }

    async fn run_change(&self, table: ObjectTable, change: &Change) -> Result<bool, PartitionError> {
        let mut next_range_id = self.next_range_id.lock().await;
        if self.closing.load(Ordering::Acquire) {
            return Err(PartitionError::Unavailable("the server is stopping".to_owned()));
        }
        let Some(Plan { parents, ranges }) = self.plan(table, change)? else { return Ok(false) };
        let ids = *next_range_id..*next_range_id + ranges.len() as u64;
        *next_range_id = ids.end;
        let pause = self.hand_over(&parents, ids.clone().zip(ranges).collect()).await?;
        let mut counts = self.counts.lock();
        match change {
            Change::Split(_) => counts.splits += 1,
            Change::Merge(_) => counts.merges += 1,
        }
        counts.longest_pause = counts.longest_pause.max(pause);
        drop(counts);
        tracing::info!(
            table = table.name(),
            ?change,
            parents = ?parents.iter().map(|parent| parent.id()).collect::<Vec<_>>(),
            heirs = ?ids,
            pause_us = pause.as_micros() as u64,
            "ranges have changed"
        );
        Ok(true)
    }

    /// Who hands over which ranges; `None`: there is nothing to change.
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
        heirs: Vec<(u64, KeyRange)>,
    ) -> Result<Duration, PartitionError> {
        let ids: Vec<u64> = heirs.iter().map(|(id, _)| *id).collect();
        let mut no_merges = Vec::with_capacity(parents.len());
        for parent in parents {
            no_merges.push(parent.hold_merges().await);
        }
        let mut ended = Ok(());
        for parent in parents {
            ended = ended.and(parent.flush_most().await);
        }
        if ended.is_ok() {
            ended = self.reserve_streams(parents[0].table(), &heirs).await;
        }
        let clock = &self.shared.clock;
        let paused_at = clock.monotonic();
        let ended = match ended {
            Ok(()) => self.hand_over_paused(parents, heirs).await,
            Err(error) => Ended::NotDone(error),
        };
        let outcome = match ended {
            Ended::Done(heirs) => {
                self.publish(parents, &heirs);
                Ok(clock.monotonic().saturating_sub(paused_at))
            }
            Ended::NotDone(error) => {
                self.remove_streams_of(parents[0].table(), &ids).await;
                parents.iter().for_each(|parent| parent.resume());
                Err(error)
            }
            Ended::Unknown(error) => {
                parents.iter().for_each(|parent| parent.fail(&error));
                Err(error)
            }
        };
        self.handed_over.send_modify(|count| *count += 1);
        outcome
    }

    async fn hand_over_paused(&self, parents: &[Arc<RangePartition>], ranges: Vec<(u64, KeyRange)>) -> Ended {
        let heirs = match self.prepare_heirs(parents, ranges).await {
            Ok(heirs) => heirs,
            Err(error) => return Ended::NotDone(error),
        };
        let old: Vec<MapEntry> =
            parents.iter().map(|parent| entry(parent.table(), parent.id(), parent.range())).collect();
        let new = heirs.iter().map(|heir| entry(parents[0].table(), heir.id(), heir.range())).collect();
        match self.change_map(old, new).await {
            Ok(true) => Ended::Done(heirs.into_iter().map(|heir| heir.start(&self.shared)).collect()),
            Ok(false) => {
                let what = "the partition map does not hold the ranges that are served";
                Ended::NotDone(PartitionError::Storage(what.to_owned()))
            }
            Err(error) if error.is_refusal() => Ended::NotDone(error),
            Err(error) => Ended::Unknown(error),
        }
    }

    /// Pauses the parents and makes everything that the heirs need.
    async fn prepare_heirs(
        &self,
        parents: &[Arc<RangePartition>],
        ranges: Vec<(u64, KeyRange)>,
    ) -> Result<Vec<Heir>, PartitionError> {
        let mut estates = Vec::with_capacity(parents.len());
        for parent in parents {
            parent.pause().await?;
            estates.push((parent.clone(), parent.estate().await?));
        }
        let mut heirs = Vec::with_capacity(ranges.len());
        for (id, range) in ranges {
            heirs.push(Heir::of(&self.shared, &estates, id, range).await?);
        }
        let changes: Vec<StreamChange> = heirs.iter().flat_map(Heir::stream_changes).collect();
        let shared = self.shared.streams.multi_modify(&changes);
        // All come to their ends, or what is left behind would be removed while it is written.
        let own = join_all(heirs.iter_mut().map(|heir| heir.write_own(&self.shared)));
        let (shared, own) = join(shared, own).await;
        shared?;
        own.into_iter().collect::<Result<(), _>>()?;
        heirs.iter_mut().try_for_each(|heir| heir.open_data(&self.shared))?;
        Ok(heirs)
    }

    /// Makes the streams that heirs don't share with anybody, with room for their first appends.
    async fn reserve_streams(
        &self,
        table: ObjectTable,
        heirs: &[(u64, KeyRange)],
    ) -> Result<(), PartitionError> {
        for (id, _) in heirs {
            Heir::reserve_streams(&self.shared, table, *id).await?;
        }
        Ok(())
    }

    /// Removes the streams of heirs that inherit nothing after all.
    async fn remove_streams_of(&self, table: ObjectTable, ids: &[u64]) {
        let streams = &self.shared.streams;
        let names = ids.iter().flat_map(|id| streams.list(&RangePartition::streams_folder(table, *id)));
        let deletes: Vec<_> = names.map(StreamChange::Delete).collect();
        if deletes.is_empty() {
            return;
        }
        if let Err(error) = self.shared.streams.multi_modify(&deletes).await {
            tracing::warn!(%error, "streams of a hand-over that failed stay until the next start");
        }
    }

    /// The heirs own the parents' keys from now on.
    fn publish(&self, parents: &[Arc<RangePartition>], heirs: &[Arc<RangePartition>]) {
        {
            // One change of ranges at a time: nobody else replaces the routes meanwhile.
            let mut next = Routes::clone(&self.routes.load());
            parents.iter().for_each(|parent| next.remove(parent.table(), &parent.range().start));
            heirs.iter().for_each(|heir| next.add(heir.table(), heir.range().clone(), heir.clone()));
            self.routes.store(Arc::new(next));
        }
        for parent in parents {
            parent.leave();
            self.shared.maintenance.retire(parent.clone());
        }
    }
}

fn entry(table: ObjectTable, id: u64, range: &KeyRange) -> MapEntry {
    MapEntry { table, id, range: range.clone() }
}
