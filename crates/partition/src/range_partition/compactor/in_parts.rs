//! A large compaction in parts, so that it does not take as much space again as its checkpoints have.
//!
//! 1. The rows of the next keys are written to a new checkpoint. It goes on where the one of the part before
//!    ended: its stream lists the extents of that, too, and its root has the parts of both.
//! 2. One change of the metadata puts it in the place of the one before, and lets the compacted checkpoints
//!    be read from the next key on only. Those of which nothing is left go.
//! 3. Their extents that only rows before that key needed leave their streams, once nobody reads them as they
//!    were (`remove_unused`). Then the next part is written.
//!
//! So at the end there is one checkpoint, as there is after a compaction in one. What always holds: each row
//! is seen either in the output or in the compacted checkpoints; the output is the oldest of them, so that
//! those that newer compactions are chosen from stay neighbours; one that ends early, for whatever reason,
//! leaves a tree that is right, and what it has done is not done again; on a full disk none begins, and none
//! goes on without room for all that is left.

use crate::checkpoint::{Caching, OverflowReads};
use crate::compaction::choose_part::{choose_part, peak_bytes};
use crate::error::PartitionError;
use crate::range_partition::compactor::applied::Merged;
use crate::range_partition::compactor::{Compactor, sizes_of};
use crate::range_partition::range_tree::replaced::Shed;
use crate::range_partition::range_tree::shared_overflow::SharedOverflow;
use crate::range_partition::range_tree::tombstones::Tombstones;
use crate::range_partition::range_tree::write_checkpoint::{First, Room, Unwritten, Written};
use crate::tree::TreeCheckpoint;
use crate::tree::merging_iterator::MergingIterator;
use bytes::Bytes;
use std::sync::Arc;

/// Checkpoints after a part of them was compacted.
struct Passed {
    /// What they are from now on: of rows that are left.
    left: Vec<Arc<TreeCheckpoint>>,
    /// As they were, those of which something is left.
    shed: Vec<Arc<TreeCheckpoint>>,
    /// Those of which nothing is left.
    gone: Vec<Arc<TreeCheckpoint>>,
}

/// Takes the output of a compaction that ended early out of its inputs: the oldest of them, if all its rows
/// are before all that is left of the others. It is not written again.
fn take_output_so_far(inputs: &mut Vec<Arc<TreeCheckpoint>>) -> Option<Arc<TreeCheckpoint>> {
    let (oldest, newer) = inputs.split_last()?;
    let root = &oldest.checkpoint.root;
    let is_before = |one: &Arc<TreeCheckpoint>| {
        root.parts.last().is_some_and(|part| part.last_key < one.reference.limit.start)
    };
    // Its tombstones could go by now.
    let is_done = oldest.is_whole() && root.deleted_count == 0 && newer.iter().all(is_before);
    if is_done && !newer.is_empty() { inputs.pop() } else { None }
}

impl Compactor {
    /// Stored bytes of each part, if these checkpoints are compacted in parts.
    fn choose_part_of(&self, merged: &[Arc<TreeCheckpoint>]) -> Option<u64> {
        // One alone loses rows of deleted containers, and overflows stay where they are as far as they can.
        if merged.len() == 1 || self.core.table.has_data() {
            return None;
        }
        // One that ends early keeps what it has written, and has freed little of what it read.
        if self.core.is_scarce() {
            return None;
        }
        // What ends before the range does would be left without keys, and not be seen as passed.
        let end = &self.core.range.end;
        if merged.iter().any(|one| one.reference.limit.end != *end) {
            return None;
        }
        choose_part(sizes_of(merged).iter().sum(), self.core.shared.settings.compaction_part_size_bytes)
    }

    /// Bytes of rows of each part, as they are before they are compressed, if these are compacted in parts.
    pub(super) fn choose_part(&self, merged: &[Arc<TreeCheckpoint>]) -> Option<u64> {
        let part_size_bytes = self.choose_part_of(merged)?;
        let size_bytes: u64 = sizes_of(merged).iter().sum();
        let row_bytes: u64 = merged.iter().map(|one| one.checkpoint.root.row_bytes).sum();
        let part = u128::from(part_size_bytes) * u128::from(row_bytes) / u128::from(size_bytes.max(1));
        Some(u64::try_from(part).unwrap_or(part_size_bytes).max(1))
    }

    /// Whether there is space for what their compaction takes beside what is stored.
    pub(super) async fn has_room_for(&self, merged: &[Arc<TreeCheckpoint>]) -> bool {
        let streams = &self.core.shared.streams;
        if streams.has_room_for(sizes_of(merged).iter().sum()).await {
            return true;
        }
        let Some(part_size_bytes) = self.choose_part_of(merged) else { return false };
        let largest_extent = |checkpoint: &Arc<TreeCheckpoint>| {
            let extents = self.sizes_of_extents(checkpoint).ok()?;
            extents.map(|(_, length)| length).max()
        };
        let largest_extents = merged.iter().map(|checkpoint| largest_extent(checkpoint).unwrap_or(u64::MAX));
        streams.has_room_for(peak_bytes(part_size_bytes, largest_extents)).await
    }

    /// Replaces checkpoints that are neighbours in age by one, part by part.
    pub(super) async fn compact_in_parts(
        &self,
        merged: Vec<Arc<TreeCheckpoint>>,
        tombstones: &Tombstones,
        first: First<'_>,
        part_size_bytes: u64,
    ) -> Result<(), Unwritten> {
        let deletes = |one: &Arc<TreeCheckpoint>| one.checkpoint.root.deleted_count > 0;
        let all: Vec<Merged> = merged.iter().map(|one| (one.reference.number, deletes(one))).collect();
        let read_count: u64 = merged.iter().map(|one| one.checkpoint.root.row_count).sum();
        let mut inputs = merged;
        let mut output = take_output_so_far(&mut inputs);
        let mut part_count: u64 = 0;
        while !inputs.is_empty() {
            if part_count > 0 && !self.may_go_on(&inputs).await? {
                return Err(PartitionError::DiskFull.into());
            }
            let (written, rest) =
                self.write_part(&inputs, output.as_deref(), tombstones, first, part_size_bytes).await?;
            let next = self.core.open_written(&written, |_| None).await?;
            inputs = self.put_part(inputs, (output, next.clone()), &written, rest).await?;
            output = next;
            part_count += 1;
            self.core.try_to_remove_unused().await;
        }
        self.note_rows_of(read_count, output.as_deref());
        if let Some(output) = &output {
            self.applied.lock().note_compacted(&all, output.reference.number);
        }
        let table = self.core.table.name();
        tracing::debug!(table, count = all.len(), part_count, part_size_bytes, "merged in parts");
        Ok(())
    }

    /// Whether another part is written of what is left of the inputs. Once the disk is full, space that work
    /// which reclaims more has claimed or will claim must not become parts.
    async fn may_go_on(&self, left: &[Arc<TreeCheckpoint>]) -> Result<bool, PartitionError> {
        if !self.core.is_scarce() {
            return Ok(true);
        }
        let mut left_bytes: u64 = 0;
        for input in left {
            left_bytes += input.visible_bytes().await?;
        }
        Ok(self.core.shared.streams.has_room_for(left_bytes).await)
    }

    /// Writes the next rows behind those of the `output` so far. Returns the key of the first one that is
    /// left, if any is.
    async fn write_part(
        &self,
        inputs: &[Arc<TreeCheckpoint>],
        output: Option<&TreeCheckpoint>,
        tombstones: &Tombstones,
        first: First<'_>,
        size_bytes: u64,
    ) -> Result<(Option<Written>, Option<Bytes>), Unwritten> {
        let mut rest = None;
        let after = output.map(|output| &output.checkpoint.root);
        let room = Room::Part { size_bytes, rest: &mut rest, after };
        let shared = match output {
            Some(output) => self.all_extents_of(output)?,
            None => SharedOverflow::default(),
        };
        let reads = OverflowReads::All;
        let rows =
            MergingIterator::over_checkpoints(inputs, &self.core.range, Caching::Bypass, &reads).await?;
        let written = self.core.write_checkpoint(rows, tombstones, first, room, &shared).await?;
        Ok((written, rest))
    }

    /// The extents that a checkpoint's stream lists.
    fn all_extents_of(&self, checkpoint: &TreeCheckpoint) -> Result<SharedOverflow, PartitionError> {
        let stream = self.core.names.checkpoint(checkpoint.reference.number);
        let listed = self.core.shared.streams.stat(&stream)?.extents;
        let extents = Arc::new(listed.into_iter().map(|(extent, _)| extent).collect());
        Ok(SharedOverflow { extents, listed_by: vec![stream] })
    }

    /// Puts the output of a part in the place of the one before, and in that of the rows that it has. Returns
    /// what is left of the inputs.
    async fn put_part(
        &self,
        inputs: Vec<Arc<TreeCheckpoint>>,
        (before, next): (Option<Arc<TreeCheckpoint>>, Option<Arc<TreeCheckpoint>>),
        written: &Option<Written>,
        rest: Option<Bytes>,
    ) -> Result<Vec<Arc<TreeCheckpoint>>, PartitionError> {
        let numbers: Vec<u64> = inputs.iter().chain(&before).map(|one| one.reference.number).collect();
        let Passed { left, shed, gone } = self.pass(inputs, rest);
        let by: Vec<Arc<TreeCheckpoint>> = left.iter().cloned().chain(next).collect();
        let mut metadata = self.core.metadata.lock().await;
        let mut next = metadata.clone();
        // Flushes may have added newer checkpoints in the meantime; these are still neighbours.
        next.checkpoints = self.core.tree().with_run_replaced(&numbers, by.clone()).references();
        self.core.adopt(&mut metadata, next, written).await?;
        self.core.replaced.shed.lock().extend(shed.into_iter().map(|former| Shed { former }));
        self.core.replace_tree(|tree| tree.with_run_replaced(&numbers, by));
        drop(metadata);
        self.core.replaced.retired.lock().extend(gone.into_iter().chain(before));
        Ok(left)
    }

    /// The inputs from the key `rest` on; without one nothing is left of them.
    fn pass(&self, inputs: Vec<Arc<TreeCheckpoint>>, rest: Option<Bytes>) -> Passed {
        let mut passed = Passed { left: Vec::new(), shed: Vec::new(), gone: Vec::new() };
        let Some(rest) = rest else { return Passed { gone: inputs, ..passed } };
        for input in inputs {
            let start = rest.clone().max(input.reference.limit.start.clone());
            let left = self.without_rows_before(&input, start);
            // The newest one stays, because newer compactions are chosen from those before it.
            if passed.left.is_empty() || left.checkpoint.root.overlaps(&left.reference.limit) {
                passed.left.push(left);
                passed.shed.push(input);
            } else {
                passed.gone.push(input);
            }
        }
        passed
    }
}
