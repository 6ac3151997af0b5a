//! What a range starts from that takes over from others: their checkpoints, by pointer, and the rest of their
//! rows, which is only in memory, as the first groups of its own log.
//!
//! A split gives both children the parent's checkpoints, a merge gives one child those of both parents; no
//! row of them is copied. The rest is copied in rounds while the parents go on, so that the last one, for
//! which they pause, is small. What always holds: a checkpoint's limit is the part of it that the parent saw
//! and the child owns, so rows of neighbours stay hidden; the child's order of checkpoints keeps each
//! parent's order; versions rise from round to round, whoever's they are, so that a replay of the child's log
//! finds every row of the rest, and it ends at the newest version of all parents.

use super::data::RangeData;
use super::load::{Loaded, RangeStreams, open_data};
use super::partition::RangePartition;
use super::range_tree::hand_over::Versions;
use super::range_tree::log_positions::LogPositions;
use super::shared::Shared;
use crate::background::retries::RangeName;
use crate::checkpoint::Checkpoint;
use crate::commit_log;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::memory::memory_table::MemoryTable;
use crate::operation::{ObjectTable, RowChange, RowVersion};
use crate::settings::PlantedFault;
use crate::tree::metadata::{CheckpointReference, Metadata};
use crate::tree::{HeldGroup, Tree, TreeCheckpoint};
use bytes::Bytes;
use std::sync::Arc;
use stream::{Location, OwnedStream, Owner, StreamChange};

/// Groups of the rest get no further operation from this size on: they fit into the journal, which is synced
/// sooner than an extent of their own.
const GROUP_SIZE_BYTES: usize = 768 << 10;

/// A range that is about to take over.
pub(crate) struct Heir {
    name: RangeName,
    names: RangeStreams,
    owner: Owner,
    metadata: Metadata,
    checkpoints: Vec<Arc<TreeCheckpoint>>,
    /// Whose stream each of its checkpoints' streams shares.
    shares: Vec<OwnedStream>,
    /// Whose blob data its own shares.
    data_shares: Vec<OwnedStream>,
    /// Its blob data, once its streams are there.
    data: Option<RangeData>,
    /// What its log holds.
    active: MemoryTable,
    /// Its log holds all changes up to this version that are in no checkpoint.
    copied: RowVersion,
    /// The newest version in its log.
    log_end: RowVersion,
    log_positions: LogPositions,
}

/// A checkpoint on its way to an heir.
#[derive(Clone)]
struct Legacy {
    stream: OwnedStream,
    checkpoint: Arc<Checkpoint>,
    /// It tells heirs, too, of all keys of the checkpoint.
    group: Option<HeldGroup>,
    root: Location,
    limit: KeyRange,
}

impl Heir {
    /// The heir of `range` among the parents, which lie in key order and neither flush nor merge any more.
    pub(crate) async fn of(
        shared: &Shared,
        parents: &[Arc<RangePartition>],
        id: u64,
        range: KeyRange,
    ) -> Result<Self, PartitionError> {
        let table = parents.first().map(|parent| parent.table());
        let table = table.ok_or_else(|| PartitionError::Storage("a range without parents".to_owned()))?;
        let mut legacies = Vec::new();
        for parent in parents {
            let tree = parent.core.tree();
            let next = tree.checkpoints.iter().filter_map(|checkpoint| legacy(parent, checkpoint, &range));
            let next: Vec<_> = next.collect();
            let roots = |legacies: &[Legacy]| legacies.iter().map(Ranked::of).collect::<Vec<_>>();
            legacies = interleave(&roots(&legacies), &roots(&next))
                .into_iter()
                .map(|place| match place {
                    Place::First(at) => legacies[at].clone(),
                    Place::Second(at) => next[at].clone(),
                    Place::Both(first, second) => joined(&legacies[first], &next[second]),
                })
                .collect();
        }
        if shared.settings.planted_fault == Some(PlantedFault::WrongHeirRange) {
            legacies.iter_mut().for_each(|legacy| misplace(&mut legacy.limit));
        }
        let names = RangeStreams::new(table, id);
        let mut flushed_versions = Vec::with_capacity(parents.len());
        for parent in parents {
            flushed_versions.push(parent.core.metadata.lock().await.flushed_version);
        }
        // What another parent has in its checkpoints beyond this is not in the log; its own log ends later
        // still.
        let flushed_version = flushed_versions.into_iter().min().unwrap_or(RowVersion(0));
        let owner = Owner::first(shared.life.incarnation);
        let mut metadata = Metadata { epoch: owner.epoch, flushed_version, ..Metadata::empty(range) };
        let (mut checkpoints, mut shares) = (Vec::new(), Vec::new());
        for legacy in legacies {
            let reference = CheckpointReference {
                number: metadata.next_checkpoint,
                root: legacy.root,
                limit: legacy.limit,
            };
            metadata.next_checkpoint += 1;
            metadata.checkpoints.push(reference.clone());
            let mut checkpoint = TreeCheckpoint::new(legacy.checkpoint, reference);
            checkpoint.group = legacy.group;
            checkpoints.push(Arc::new(checkpoint));
            shares.push(legacy.stream);
        }
        let data_shares = parents
            .iter()
            .filter_map(|parent| Some(parent.core.names.data.as_ref()?.owned_by(parent.core.owner)));
        let data_shares = data_shares.collect();
        let (data, log_positions) = (None, LogPositions::default());
        let active = MemoryTable::new(&shared.memory);
        let (copied, log_end) = (flushed_version, flushed_version);
        Ok(Heir {
            name: (table, id),
            names,
            owner,
            metadata,
            checkpoints,
            shares,
            data_shares,
            data,
            active,
            copied,
            log_end,
            log_positions,
        })
    }

    /// Makes the streams that it shares with nobody, with room for their first appends.
    pub(crate) async fn reserve_streams(
        shared: &Shared,
        table: ObjectTable,
        id: u64,
    ) -> Result<(), PartitionError> {
        let names = RangeStreams::new(table, id);
        let owner = Owner::first(shared.life.incarnation);
        shared.streams.create(&[names.metadata.clone(), names.log.clone()], owner).await?;
        shared.streams.reserve(&names.metadata, owner).await?;
        Ok(shared.streams.reserve(&names.log, owner).await?)
    }

    /// The changes to the streams that let it share its parents' checkpoints.
    pub(crate) fn checkpoint_shares(&self) -> Vec<StreamChange> {
        let mut changes = Vec::new();
        for (reference, from) in self.metadata.checkpoints.iter().zip(&self.shares) {
            let to = self.names.checkpoint(reference.number).owned_by(self.owner);
            changes.push(StreamChange::Create(to.clone()));
            changes.push(StreamChange::Share { from: from.clone(), to });
        }
        changes
    }

    /// The changes to the streams that let it share its parents' blob data. They end what the parents append
    /// to.
    pub(crate) fn data_shares(&self) -> Vec<StreamChange> {
        let Some(to) = &self.names.data else { return Vec::new() };
        let to = to.owned_by(self.owner);
        let share = |from: &OwnedStream| StreamChange::Share { from: from.clone(), to: to.clone() };
        let shares = self.data_shares.iter().map(share);
        std::iter::once(StreamChange::Create(to.clone())).chain(shares).collect()
    }

    /// Makes its metadata durable.
    pub(crate) async fn write_metadata(&self, shared: &Shared) -> Result<(), PartitionError> {
        shared.streams.append(&self.names.metadata, self.owner, vec![self.metadata.encode()]).await?;
        Ok(())
    }

    /// Copies what is only in its parents' memory, up to this version, to its log. No change up to it may
    /// come later. Returns the size of what it copied in bytes.
    pub(crate) async fn copy(
        &mut self,
        shared: &Shared,
        parents: &[Arc<RangePartition>],
        up_to: RowVersion,
    ) -> Result<u64, PartitionError> {
        let versions = Versions { after: self.copied, up_to };
        if up_to <= self.copied {
            return Ok(0);
        }
        let mut rest = Vec::new();
        for parent in parents {
            let range = self.metadata.range.intersect(parent.range());
            rest.extend(parent.core.changes_in_memory(&range, versions).await?);
        }
        rest.sort_by_key(|(version, _)| *version);
        let mut size_bytes = 0;
        for (group, end) in groups_of(&rest, GROUP_SIZE_BYTES) {
            size_bytes += group.len() as u64;
            self.append(shared, group, end).await?;
        }
        for (version, change) in rest {
            match change {
                RowChange::Put { key, value } => self.active.insert(key.as_bytes(), version, Some(value)),
                RowChange::Delete { key } => self.active.insert(key.as_bytes(), version, None),
            }
        }
        self.copied = up_to;
        Ok(size_bytes)
    }

    /// Copies the last of its parents' rows. They have paused; `last_version` is the newest version of them
    /// all.
    pub(crate) async fn copy_last(
        &mut self,
        shared: &Shared,
        parents: &[Arc<RangePartition>],
        last_version: RowVersion,
    ) -> Result<u64, PartitionError> {
        let size_bytes = self.copy(shared, parents, last_version).await?;
        if self.log_end < last_version {
            // Changes nothing: a replay learns of the version, or an heir might give it out again.
            let mut group = Vec::new();
            commit_log::start_group(&mut group);
            commit_log::put_operation(&mut group, last_version, &[]);
            self.append(shared, group, last_version).await?;
        }
        Ok(size_bytes)
    }

    /// Appends a group that ends at version `end` to its log.
    async fn append(
        &mut self,
        shared: &Shared,
        group: Vec<u8>,
        end: RowVersion,
    ) -> Result<(), PartitionError> {
        let written = shared.streams.append(&self.names.log, self.owner, vec![group.into()]).await?;
        if let Some(place) = written.first() {
            self.log_positions.note(*place, self.log_end);
        }
        self.log_end = end;
        Ok(())
    }

    /// Learns of its blob data; its streams are there.
    pub(crate) fn open_data(
        &mut self,
        shared: &Shared,
        parents: &[Arc<RangePartition>],
    ) -> Result<(), PartitionError> {
        if let Some(data) = &self.names.data {
            let of_parents: Vec<_> = parents.iter().filter_map(|parent| parent.data.clone()).collect();
            self.data = Some(open_data(&shared.streams, data)?.inherited_from(&of_parents));
        }
        Ok(())
    }

    /// Starts to serve. Nothing can fail any more: the partition map names it.
    pub(crate) fn start(self, shared: &Shared, parents: &[Arc<RangePartition>]) -> Arc<RangePartition> {
        let tree = Tree {
            active: Arc::new(self.active),
            frozen: Vec::new(),
            checkpoints: self.checkpoints.into(),
            fetch_epoch: 0,
        };
        let (last_version, log_positions, data) = (self.log_end, self.log_positions, self.data);
        let loaded = Loaded {
            metadata: self.metadata,
            tree,
            last_version,
            log_positions,
            data,
            replayed: 0,
            unused: Vec::new(),
            owner: self.owner,
            named_owner: Some(self.owner),
        };
        let started = RangePartition::start(shared.clone(), self.name, loaded);
        parents.iter().for_each(|parent| started.pipeline.time.go_on_from(&parent.pipeline.time));
        started.load.heat.inherit(parents.iter().map(|parent| &parent.load.heat), started.range());
        started
    }

    /// Its id.
    pub(crate) fn id(&self) -> u64 {
        self.name.1
    }

    /// Its owner.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// The keys it will own.
    pub(crate) fn range(&self) -> &KeyRange {
        &self.metadata.range
    }
}

/// Groups of a log that hold these changes, sorted by version, each with the version at which it ends, one
/// made after the other was taken. A group takes no further operation from `size_bytes` on. Rows of several
/// parents may carry the same version: they make one operation.
fn groups_of(
    rest: &[(RowVersion, RowChange)],
    size_bytes: usize,
) -> impl Iterator<Item = (Vec<u8>, RowVersion)> {
    let mut operations = rest.chunk_by(|(a, _), (b, _)| a == b);
    std::iter::from_fn(move || {
        let mut operation = operations.next()?;
        let mut group = Vec::new();
        commit_log::start_group(&mut group);
        loop {
            let version = operation[0].0;
            let changes: Vec<RowChange> = operation.iter().map(|(_, change)| change.clone()).collect();
            commit_log::put_operation(&mut group, version, &changes);
            let has_room = group.len() < size_bytes;
            match has_room.then(|| operations.next()).flatten() {
                Some(next) => operation = next,
                None => return Some((group, version)),
            }
        }
    })
}

/// What `checkpoint` is for an heir of `range`; `None`: it holds none of its rows.
fn legacy(parent: &RangePartition, checkpoint: &TreeCheckpoint, range: &KeyRange) -> Option<Legacy> {
    let limit = checkpoint.reference.limit.intersect(range);
    if limit.is_empty() || !checkpoint.checkpoint.root.overlaps(&limit) {
        return None;
    }
    Some(Legacy {
        stream: parent.core.names.checkpoint(checkpoint.reference.number).owned_by(parent.core.owner),
        checkpoint: Arc::new(checkpoint.checkpoint.reopened()),
        group: checkpoint.group.clone(),
        root: checkpoint.reference.root,
        limit,
    })
}

/// The planted fault: the limit starts one byte late, so that its first partition name is hidden.
fn misplace(limit: &mut KeyRange) {
    if let Some(last) = limit.start.last() {
        limit.start = Bytes::from([&limit.start[..limit.start.len() - 1], &[last + 1]].concat());
    }
}

/// One checkpoint that both parents had, from a former split.
fn joined(first: &Legacy, second: &Legacy) -> Legacy {
    let limit = KeyRange { start: first.limit.start.clone(), end: second.limit.end.clone() };
    Legacy { limit, ..first.clone() }
}

/// What decides a checkpoint's place among those of two parents.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ranked {
    root: Location,
    limit: KeyRange,
    size_bytes: u64,
}

impl Ranked {
    fn of(legacy: &Legacy) -> Self {
        let size_bytes = legacy.checkpoint.root.stored_bytes;
        Ranked { root: legacy.root, limit: legacy.limit.clone(), size_bytes }
    }

    /// Whether `second` is the same checkpoint with the limit that follows.
    fn continues_in(&self, second: &Ranked) -> bool {
        self.root == second.root && self.limit.end.as_ref() == Some(&second.limit.start)
    }
}

/// From which list the next one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    First(usize),
    Second(usize),
    /// The same checkpoint is in both.
    Both(usize, usize),
}

/// Joins two lists, each newest first and for other keys than the other: each keeps its order, a checkpoint
/// that both have comes once, and else small ones, which are young, come first.
fn interleave(first: &[Ranked], second: &[Ranked]) -> Vec<Place> {
    let (mut a, mut b) = (0, 0);
    let mut places = Vec::with_capacity(first.len() + second.len());
    loop {
        let place = match (first.get(a), second.get(b)) {
            (None, None) => return places,
            (Some(_), None) => Place::First(a),
            (None, Some(_)) => Place::Second(b),
            (Some(x), Some(y)) if x.continues_in(y) => Place::Both(a, b),
            (Some(x), Some(y)) => {
                let x_comes_later = second[b..].iter().any(|later| x.continues_in(later));
                let y_comes_later = first[a..].iter().any(|later| later.continues_in(y));
                if y_comes_later || (!x_comes_later && x.size_bytes <= y.size_bytes) {
                    Place::First(a)
                } else {
                    Place::Second(b)
                }
            }
        };
        a += usize::from(!matches!(place, Place::Second(_)));
        b += usize::from(!matches!(place, Place::First(_)));
        places.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::ExtentId;

    const MIDDLE: &[u8] = b"m";

    fn left(root: u64, size_bytes: u64) -> Ranked {
        let limit = KeyRange { start: Bytes::new(), end: Some(Bytes::from_static(MIDDLE)) };
        Ranked { root: Location { extent: ExtentId(root), offset: 0, len: 1 }, limit, size_bytes }
    }

    fn right(root: u64, size_bytes: u64) -> Ranked {
        let limit = KeyRange { start: Bytes::from_static(MIDDLE), end: None };
        Ranked { limit, ..left(root, size_bytes) }
    }

    #[test]
    fn lists_join_young_ones_first_and_keep_their_order() {
        use Place::{First, Second};
        assert_eq!(interleave(&[], &[]), []);
        let joined = interleave(&[left(1, 5), left(2, 50), left(3, 7)], &[right(4, 10), right(5, 60)]);
        assert_eq!(joined, [First(0), Second(0), First(1), First(2), Second(1)]);
    }

    #[test]
    fn a_checkpoint_of_a_former_split_comes_once() {
        use Place::{Both, First, Second};
        // The old one is in both; each side has flushed since, and the right one has merged.
        let joined = interleave(&[left(1, 5), left(9, 100)], &[right(2, 500), right(9, 100), right(7, 1)]);
        assert_eq!(joined, [First(0), Second(0), Both(1, 1), Second(2)]);
        // The same place with a gap between the limits stays two.
        let mut far = right(9, 100);
        far.limit.start = Bytes::from_static(b"n");
        assert_eq!(interleave(&[left(9, 100)], &[far]), [First(0), Second(0)]);
    }

    #[test]
    fn groups_of_a_rest_end_between_versions() {
        let delete = |version, name: &str| {
            (RowVersion(version), RowChange::Delete { key: crate::key::RowKey::new("a", 1, name, "r") })
        };
        let rest = [delete(5, "p"), delete(7, "p"), delete(7, "q"), delete(8, "p")];
        for (size_bytes, expected) in [
            (1 << 20, vec![vec![(5, 1), (7, 2), (8, 1)]]),
            (30, vec![vec![(5, 1), (7, 2)], vec![(8, 1)]]),
            (1, vec![vec![(5, 1)], vec![(7, 2)], vec![(8, 1)]]),
        ] {
            let mut found = Vec::new();
            for (group, end) in groups_of(&rest, size_bytes) {
                let operations = commit_log::parse_group(&group).unwrap();
                assert_eq!(operations.last().unwrap().0, end);
                let counts = operations.iter().map(|(version, changes)| (version.0, changes.len()));
                found.push(counts.collect::<Vec<_>>());
            }
            assert_eq!(found, expected, "{size_bytes} bytes");
        }
        assert_eq!(groups_of(&[], 1).count(), 0);
    }

    #[test]
    fn lists_that_cross_lose_nothing() {
        let joined = interleave(&[left(1, 1), left(2, 1)], &[right(2, 1), right(1, 1)]);
        let firsts = joined.iter().filter(|place| !matches!(place, Place::Second(_))).count();
        let seconds = joined.iter().filter(|place| !matches!(place, Place::First(_))).count();
        assert_eq!((firsts, seconds), (2, 2));
    }
}
