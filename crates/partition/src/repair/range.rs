//! The repair of one range: its metadata, log and checkpoints are made whole from what reads of them.
//!
//! 1. Damaged checkpoints are written anew from their row blocks, and what reads of a damaged log becomes a
//!    checkpoint.
//! 2. Metadata that names these is written to a stream of its own.
//! 3. One change of the streams puts it, and an empty log, in the place of the damaged ones.
//!
//! What always holds: up to the third step nothing that was there is changed, and what was written by a
//! repair that was cut off before it is removed by the next load. The order of checkpoints stays, so that a
//! row never hides a newer one.

use super::checkpoint::{Examined, LostRows, examine, rewrite};
use super::own_root::{FoundRoot, OwnRoot};
use crate::checkpoint::{CheckpointWriter, Root};
use crate::commit_log;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::map::choose_owner::choose_owner;
use crate::memory::memory_table::MemoryTable;
use crate::operation::{ObjectTable, RowChange, RowVersion};
use crate::range_partition::{RangeStreams, Shared, newest_owner, read_metadata};
use crate::tree::merging_iterator::MergingIterator;
use crate::tree::metadata::{CheckpointReference, Metadata};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::{Location, Owner, Salvaged, StreamChange, StreamName};

/// What was done to a range, and what is lost of it.
#[derive(Debug, Default)]
pub(super) struct RangeRepair {
    pub(super) actions: Vec<String>,
    pub(super) lost_rows: Vec<LostRows>,
    /// Changes of the log are lost.
    pub(super) lost_changes: Option<LostChanges>,
    /// Why any row may be older than it was.
    pub(super) is_uncertain: Option<String>,
    /// Bytes that were written anew.
    pub(super) written_bytes: u64,
}

/// Changes that are lost from a log.
#[derive(Debug)]
pub(super) struct LostChanges {
    /// Keys that were changed behind all of them: what is there of these is right.
    pub(super) certain: BTreeSet<Bytes>,
    pub(super) reason: String,
}

/// The range to be repaired.
pub(super) struct Range<'a> {
    pub(super) table: ObjectTable,
    pub(super) id: u64,
    pub(super) keys: &'a KeyRange,
}

impl Range<'_> {
    fn name(&self) -> String {
        format!("range {} of table {}", self.id, self.table.name())
    }
}

/// What reads of a log.
struct SalvagedLog {
    memory: Arc<MemoryTable>,
    row_count: u64,
    last_version: RowVersion,
    lost: Option<LostChanges>,
}

/// Makes the range whole, if it is not.
pub(super) async fn repair(shared: &Shared, range: &Range<'_>) -> Result<RangeRepair, PartitionError> {
    let mut done = RangeRepair::default();
    let names = RangeStreams::new(range.table, range.id);
    let streams = &shared.streams;
    let read = read_metadata(streams, names.metadata()).await;
    let read = read.ok().flatten().filter(|metadata| metadata.range == *range.keys);
    let is_metadata_whole = read.is_some();
    let newest = match read {
        Some(_) => None,
        None => newest_that_reads(shared, &names, range).await?,
    };
    let is_known = is_metadata_whole || newest.is_some();
    let metadata = match read.or(newest) {
        Some(metadata) => metadata,
        None => rebuilt(shared, &names, range).await?,
    };
    let is_log_whole = streams.is_whole(names.log()).await?;
    let mut examined = Vec::with_capacity(metadata.checkpoints.len());
    for reference in &metadata.checkpoints {
        let mut found = examine(shared, reference).await;
        // Unneeded parts of it may be damaged, too: they are dropped.
        found.is_whole &= streams.is_whole_but_for_its_end(&names.checkpoint(reference.number)).await?;
        examined.push(found);
    }
    if is_metadata_whole && is_log_whole && examined.iter().all(|examined| examined.is_whole) {
        let mut accepted = 0;
        for reference in &metadata.checkpoints {
            accepted += streams.accept_ends(&names.checkpoint(reference.number)).await?;
        }
        if accepted > 0 {
            done.actions.push(format!("{}: its checkpoints are whole and end where they do", range.name()));
        }
        return Ok(done);
    }
    if !is_metadata_whole {
        let from = if is_known { "what reads of it" } else { "its checkpoints" };
        done.actions.push(format!("{}: its metadata is made again from {from}", range.name()));
    }
    let owner = choose_owner(newest_owner(&shared.streams, &names)?, shared.life.incarnation);
    let mut next = Metadata { epoch: owner.epoch, ..metadata.clone() };
    next.next_checkpoint = next.next_checkpoint.max(highest_number(shared, &names) + 1);
    next.checkpoints.clear();
    for (reference, examined) in metadata.checkpoints.iter().zip(&examined) {
        let kept = keep(shared, range, (&names, owner), (reference, examined), &mut next, &mut done).await?;
        next.checkpoints.extend(kept);
    }
    let log = salvage_log(shared, &names, &metadata).await?;
    if !is_log_whole {
        done.actions.push(format!("{}: its log is written anew", range.name()));
    }
    if !is_known {
        sort_by_version(shared, &mut next.checkpoints).await?;
        // Which part of each checkpoint counted, is unknown now: replaced rows may be back.
        done.is_uncertain = Some("the metadata of its range was lost, and is made again".to_owned());
    }
    if let Some(newest) = write_log(shared, range, (&names, owner), &log, &mut next).await? {
        next.checkpoints.insert(0, newest);
    }
    next.flushed_version = next.flushed_version.max(log.last_version);
    next.log_start = None;
    done.lost_changes = log.lost;
    put_in_place(shared, range, (&names, owner), &next).await?;
    for reference in &next.checkpoints {
        let stat = streams.stat(&names.checkpoint(reference.number))?;
        if reference.number >= metadata.next_checkpoint {
            done.written_bytes += stat.extents.iter().map(|(_, length)| length).sum::<u64>();
        }
    }
    Ok(done)
}

/// The highest number that a checkpoint's stream of the range has.
fn highest_number(shared: &Shared, names: &RangeStreams) -> u64 {
    numbers(shared, names).into_iter().max().unwrap_or(0)
}

fn numbers(shared: &Shared, names: &RangeStreams) -> Vec<u64> {
    let listed = shared.streams.list(names.row_data());
    listed.iter().filter_map(|name| name.as_str().rsplit('/').next()?.parse().ok()).collect()
}

/// The last metadata that reads, if nothing speaks against its being the last that there was: what it names
/// is there, and no checkpoint is younger.
async fn newest_that_reads(
    shared: &Shared,
    names: &RangeStreams,
    range: &Range<'_>,
) -> Result<Option<Metadata>, PartitionError> {
    let mut newest = None;
    let mut is_behind = false;
    let mut visit = |salvaged| match salvaged {
        Salvaged::Block(_, block) => {
            newest = Metadata::decode(&block).ok();
            is_behind = false;
        }
        // Where an end is in doubt there may be nothing.
        Salvaged::Missing { is_end, .. } => is_behind |= !is_end,
    };
    shared.streams.salvage(names.metadata(), &mut visit).await?;
    let Some(metadata) = newest.filter(|newest: &Metadata| !is_behind && newest.range == *range.keys) else {
        return Ok(None);
    };
    let is_oldest_of = |number: &u64| *number < metadata.next_checkpoint;
    let log_is_there = match (metadata.log_start, shared.streams.stat(names.log())) {
        (Some(start), Ok(stat)) => stat.extents.iter().any(|(extent, _)| *extent == start.extent),
        (None, _) => true,
        (Some(_), Err(_)) => false,
    };
    let mut is_there = log_is_there && numbers(shared, names).iter().all(is_oldest_of);
    for reference in &metadata.checkpoints {
        is_there &= root_at(shared, reference.root).await.is_ok();
    }
    Ok(Some(metadata).filter(|_| is_there))
}

/// Metadata of a range of which none reads: its checkpoints, newest first, and all of its log.
async fn rebuilt(
    shared: &Shared,
    names: &RangeStreams,
    range: &Range<'_>,
) -> Result<Metadata, PartitionError> {
    let mut found = Vec::new();
    for number in numbers(shared, names) {
        let mut walk = OwnRoot::default();
        let mut visit = |salvaged| walk.visit(&salvaged);
        shared.streams.salvage(&names.checkpoint(number), &mut visit).await?;
        let root = match walk.found() {
            FoundRoot::At(root) => root,
            FoundRoot::Unwritten => continue,
            FoundRoot::Lost => {
                // It is written anew from its row blocks.
                let stat = shared.streams.stat(&names.checkpoint(number));
                let extent = stat.ok().and_then(|stat| stat.extents.last().map(|(extent, _)| *extent));
                let Some(extent) = extent else { continue };
                let root = Location { extent, offset: 0, len: 0 };
                found.push((u64::MAX, number, root));
                continue;
            }
        };
        found.push((root_at(shared, root).await?.highest_version, number, root));
    }
    found.sort_by_key(|(highest_version, number, _)| std::cmp::Reverse((*highest_version, *number)));
    let known =
        found.iter().map(|(highest_version, ..)| *highest_version).filter(|version| *version < u64::MAX);
    let mut metadata = Metadata::empty(range.keys.clone());
    metadata.flushed_version = RowVersion(known.max().unwrap_or(0));
    metadata.next_checkpoint = found.iter().map(|(_, number, _)| number + 1).max().unwrap_or(1);
    let reference = |(_, number, root)| CheckpointReference { number, root, limit: range.keys.clone() };
    metadata.checkpoints = found.into_iter().map(reference).collect();
    Ok(metadata)
}

/// Newest first, by what they hold.
async fn sort_by_version(
    shared: &Shared,
    checkpoints: &mut Vec<CheckpointReference>,
) -> Result<(), PartitionError> {
    let mut versions = Vec::with_capacity(checkpoints.len());
    for reference in checkpoints.drain(..) {
        let root = root_at(shared, reference.root).await?;
        versions.push(((root.highest_version, reference.number), reference));
    }
    versions.sort_by_key(|(order, _)| std::cmp::Reverse(*order));
    checkpoints.extend(versions.into_iter().map(|(_, reference)| reference));
    Ok(())
}

async fn root_at(shared: &Shared, place: Location) -> Result<Root, PartitionError> {
    let root = Root::decode(&shared.streams.read(place).await?);
    root.map_err(|error| PartitionError::Storage(format!("a checkpoint's root: {error}")))
}

/// A checkpoint as it is, or written anew if it is damaged.
async fn keep(
    shared: &Shared,
    range: &Range<'_>,
    (names, owner): (&RangeStreams, Owner),
    (reference, examined): (&CheckpointReference, &Examined),
    next: &mut Metadata,
    done: &mut RangeRepair,
) -> Result<Option<CheckpointReference>, PartitionError> {
    let stream = names.checkpoint(reference.number);
    if examined.is_whole {
        shared.streams.accept_ends(&stream).await?;
        return Ok(Some(reference.clone()));
    }
    let number = next.next_checkpoint;
    next.next_checkpoint += 1;
    let to = names.checkpoint(number);
    shared.streams.create(std::slice::from_ref(&to), owner).await?;
    let (finished, lost) = rewrite(shared, range.table, &stream, examined, (&to, owner)).await?;
    done.actions.push(format!("{}: checkpoint {} is written anew", range.name(), reference.number));
    done.lost_rows.extend(lost);
    let limit = reference.limit.clone();
    Ok(finished.map(|finished| CheckpointReference { number, root: finished.root, limit }))
}

/// Reads what reads of the log, into memory.
async fn salvage_log(
    shared: &Shared,
    names: &RangeStreams,
    metadata: &Metadata,
) -> Result<SalvagedLog, PartitionError> {
    let mut log = SalvagedLog {
        memory: Arc::new(MemoryTable::new(&shared.memory)),
        row_count: 0,
        last_version: metadata.flushed_version,
        lost: None,
    };
    let start = metadata.log_start;
    let mut gap: Option<String> = None;
    let mut visit = |salvaged| match salvaged {
        // What lies before the start is in checkpoints.
        Salvaged::Missing { extent, from, to, problem, .. } => {
            let is_flushed =
                start.is_some_and(|start| extent == start.extent && to <= start.offset && from < to);
            if !is_flushed {
                gap.get_or_insert(format!("the log, extent {extent} from byte {from} on: {problem}"));
            }
        }
        Salvaged::Block(location, group) => match commit_log::parse_group(&group) {
            Ok(operations) => {
                let first = operations.first().map(|(version, _)| *version);
                if first.is_some_and(|first| first <= metadata.flushed_version) {
                    // So is what lies before this group.
                    gap = None;
                } else if let Some(reason) = gap.take() {
                    log.lost = Some(LostChanges { certain: BTreeSet::new(), reason });
                }
                for (version, changes) in operations {
                    log.take(version, changes);
                }
            }
            Err(error) => {
                let Location { extent, offset, .. } = location;
                gap.get_or_insert(format!("the log, extent {extent} at {offset}: {error}"));
            }
        },
    };
    shared.streams.salvage(names.log(), &mut visit).await?;
    if let Some(reason) = gap {
        log.lost = Some(LostChanges { certain: BTreeSet::new(), reason });
    }
    Ok(log)
}

impl SalvagedLog {
    fn take(&mut self, version: RowVersion, changes: Vec<RowChange>) {
        if version <= self.last_version {
            return;
        }
        self.last_version = version;
        for change in changes {
            self.row_count += 1;
            let (key, value) = match change {
                RowChange::Put { key, value } => (key, Some(value)),
                RowChange::Delete { key } => (key, None),
            };
            self.memory.insert(key.as_bytes(), version, value);
            if let Some(lost) = &mut self.lost {
                lost.certain.insert(Bytes::copy_from_slice(key.as_bytes()));
            }
        }
    }
}

/// Makes a checkpoint of what was read of the log.
async fn write_log(
    shared: &Shared,
    range: &Range<'_>,
    (names, owner): (&RangeStreams, Owner),
    log: &SalvagedLog,
    next: &mut Metadata,
) -> Result<Option<CheckpointReference>, PartitionError> {
    if log.row_count == 0 {
        return Ok(None);
    }
    let number = next.next_checkpoint;
    next.next_checkpoint += 1;
    let to = names.checkpoint(number);
    shared.streams.create(std::slice::from_ref(&to), owner).await?;
    let has_data = range.table.has_data();
    let left = Arc::new(BTreeSet::new());
    let mut writer = CheckpointWriter::new(shared.streams.clone(), to, owner, left, has_data, None);
    let mut rows = MergingIterator::over_memory(log.memory.clone(), has_data);
    while let Some(row) = rows.row() {
        writer.add(row).await?;
        rows.step().await?;
    }
    let finished = writer.finish().await?;
    let limit = range.keys.clone();
    Ok(finished.map(|finished| CheckpointReference { number, root: finished.root, limit }))
}

/// Puts the new metadata and an empty log in the place of those that are there.
async fn put_in_place(
    shared: &Shared,
    range: &Range<'_>,
    (names, owner): (&RangeStreams, Owner),
    next: &Metadata,
) -> Result<(), PartitionError> {
    let streams = &shared.streams;
    let made = StreamName::new(&format!("{}repaired", RangeStreams::folder(range.table, range.id)));
    if streams.exists(&made) {
        // A repair was cut off.
        streams.delete(&made, owner).await?;
    }
    streams.create(std::slice::from_ref(&made), owner).await?;
    streams.append(&made, owner, vec![next.encode()]).await?;
    let mut changes = Vec::new();
    for stream in [names.metadata(), names.log()] {
        if streams.exists(stream) {
            changes.push(StreamChange::Delete(stream.owned_by(owner)));
        }
    }
    changes.push(StreamChange::Rename { from: made.owned_by(owner), to: names.metadata().owned_by(owner) });
    changes.push(StreamChange::Create(names.log().owned_by(owner)));
    let kept: Vec<u64> = next.checkpoints.iter().map(|reference| reference.number).collect();
    for number in numbers(shared, names).into_iter().filter(|number| !kept.contains(number)) {
        changes.push(StreamChange::Delete(names.checkpoint(number).owned_by(owner)));
    }
    streams.multi_modify(&changes).await?;
    Ok(())
}
