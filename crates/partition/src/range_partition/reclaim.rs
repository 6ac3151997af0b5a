//! Reclaiming on a full disk: one checkpoint loses the rows that newer ones hide, in parts that fit what is
//! free.
//!
//! 1. `choose_reclaim` says which one, and how much of it stays, roughly. For the next part space is claimed.
//! 2. Its first rows that stay become a checkpoint of their own, in front of it. What is left of it is read
//!    from the next row on: its reference has a later start. Both are one change of the metadata.
//! 3. Once nobody reads it as it was, its extents that only the rows before that start needed leave its
//!    stream. When nothing is left of it, it goes as a whole.
//!
//! What always holds: each row is seen in one of the two at any moment; an extent leaves only while no row
//! needs it that this range, an heir or a reader may see; a part takes no more than was claimed.

use super::RangePartition;
use super::compact::newer_than;
use super::flush::Room;
use super::shared_overflow::SharedOverflow;
use crate::compaction::choose_reclaim::{Holding, choose_reclaim};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::settings::PlantedFault;
use crate::tree::merging_iterator::MergingIterator;
use crate::tree::metadata::CheckpointReference;
use crate::tree::{Tree, TreeCheckpoint};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use stream::StreamChange;

/// Bytes of rows of one part, at most.
const PART_SIZE_BYTES_MAX: u64 = 64 << 20;
/// A part is not worth its files below this share of an extent.
const PART_OF_EXTENT_MIN: u64 = 4;
/// What a part's index, filters and headers take besides its rows, as a share of what is claimed.
const OVERHEAD_DIVISOR: u64 = 8;

/// A checkpoint as it was before its first rows moved.
pub(super) struct Shed {
    former: Arc<TreeCheckpoint>,
}

impl Shed {
    fn number(&self) -> u64 {
        self.former.reference.number
    }

    /// Whether it is the checkpoint of this number and somebody may read it as it was.
    pub(super) fn is_read(&self, number: u64) -> bool {
        self.number() == number
            && (Arc::strong_count(&self.former) > 1 || Arc::strong_count(&self.former.checkpoint) > 1)
    }
}

/// By the number of a checkpoint, the numbers of the newer ones whose hidden rows it has lost. It outlives
/// merges: what was done is not done again, or merges, which join what was written in parts, and reclaims
/// would go on for ever.
#[derive(Default)]
pub(super) struct Applied {
    newer: BTreeMap<u64, BTreeSet<u64>>,
    /// Of the part that is being written.
    of_part: BTreeSet<u64>,
}

/// A checkpoint that is merged: its number, and whether it has deletions.
pub(super) type Merged = (u64, bool);

impl Applied {
    fn keep(&mut self, numbers: &BTreeSet<u64>) {
        self.newer.retain(|number, _| numbers.contains(number));
        self.newer.values_mut().for_each(|newer| newer.retain(|number| numbers.contains(number)));
    }

    fn has(&self, number: u64, newer: u64) -> bool {
        self.newer.get(&number).is_some_and(|applied| applied.contains(&newer))
    }

    /// These became the checkpoint `result`. It deletes no more than they did, so who has lost what each of
    /// them hides has lost what it does; and it holds no more, so it has lost what all of them had.
    pub(super) fn note_compacted(&mut self, merged: &[Merged], result: u64) {
        for newer in self.newer.values_mut().chain([&mut self.of_part]) {
            if merged.iter().all(|(number, deletes)| !deletes || newer.contains(number)) {
                newer.insert(result);
            }
        }
        let lost = merged.iter().map(|(number, _)| self.newer.get(number).cloned().unwrap_or_default());
        let lost = lost.reduce(|lost, other| &lost & &other).unwrap_or_default();
        self.newer.insert(result, lost);
    }

    /// A part of `former` is going to be written that loses what `newer` hide.
    fn begin_part(&mut self, newer: &[u64], former: u64) {
        self.of_part = newer.iter().chain(self.newer.get(&former).into_iter().flatten()).copied().collect();
    }

    /// It became the checkpoint `output`, if any of its rows are left.
    fn end_part(&mut self, former: Merged, output: Option<u64>) {
        let lost = std::mem::take(&mut self.of_part);
        if let Some(output) = output {
            self.note_compacted(&[former], output);
            self.newer.insert(output, lost);
        }
    }
}

impl RangePartition {
    /// Takes one part off a checkpoint, if that is worth it. Returns how many were written or found empty.
    pub(super) async fn reclaim(
        &self,
        tree: &Tree,
        give_up: &(dyn Fn() -> bool + Sync),
    ) -> Result<u64, PartitionError> {
        if !self.is_tight().await {
            return Ok(0);
        }
        let checkpoints = &tree.checkpoints;
        let numbers: Vec<u64> = checkpoints.iter().map(|one| one.reference.number).collect();
        self.applied.lock().keep(&numbers.iter().copied().collect());
        let dead = self.shared.dead.of_table(self.table);
        let mut held = Vec::with_capacity(checkpoints.len());
        for (index, checkpoint) in checkpoints.iter().enumerate() {
            let root = &checkpoint.checkpoint.root;
            let size_bytes = checkpoint.visible_bytes().await?;
            let scaled = |count: u64| {
                let scaled =
                    u128::from(count) * u128::from(size_bytes) / u128::from(root.stored_bytes.max(1));
                u64::try_from(scaled).unwrap_or(count).min(count)
            };
            let dead_bytes = if dead.is_empty() { 0 } else { checkpoint.dead_bytes(&dead).await? };
            let applied = self.applied.lock();
            held.push(Holding {
                size_bytes,
                row_count: scaled(root.row_count),
                deleted_count: scaled(root.deleted_count),
                dead_bytes,
                is_begun: checkpoint.reference.limit.start > self.range.start,
                applied: numbers[..index].iter().map(|newer| applied.has(numbers[index], *newer)).collect(),
            });
        }
        let Some(chosen) = choose_reclaim(&held, self.gain_min_bytes()) else { return Ok(0) };
        let extent_bytes = self.shared.streams.extent_size_bytes_max();
        let wanted = chosen.kept_bytes.clamp(extent_bytes / PART_OF_EXTENT_MIN, PART_SIZE_BYTES_MAX);
        let wanted = wanted + wanted / OVERHEAD_DIVISOR;
        let least = (extent_bytes / PART_OF_EXTENT_MIN).min(wanted);
        let Some(claim) = self.shared.streams.claim(wanted, least).await else { return Ok(0) };
        let former = checkpoints[chosen.index].clone();
        let hiding = checkpoints[..chosen.index].iter().filter(|one| one.checkpoint.root.deleted_count > 0);
        let hiding: Vec<Arc<TreeCheckpoint>> = hiding.cloned().collect();
        let size_bytes = claim.size_bytes() - claim.size_bytes() / OVERHEAD_DIVISOR;
        let mut rest = None;
        let merges = AtomicU64::new(0);
        self.applied.lock().begin_part(&numbers[..chosen.index], former.reference.number);
        let run = [former.clone()];
        let first = newer_than(&run, give_up, &merges);
        let rows = MergingIterator::over_unhidden(&hiding, &former, &self.range).await?;
        let room = Room::Part { size_bytes, rest: &mut rest };
        let nothing = SharedOverflow::default();
        let written = self.write_checkpoint(rows, !chosen.drops_deletions, first, room, &nothing).await?;
        drop((claim, run));
        let output = self.open_written(&written, |_| None).await?;
        let left = rest.map(|start| self.without_rows_before(&former, start));
        let output_number = output.as_ref().map(|output| output.reference.number);
        let by: Vec<Arc<TreeCheckpoint>> = output.into_iter().chain(left.clone()).collect();
        let mut metadata = self.metadata.lock().await;
        let mut next = metadata.clone();
        next.checkpoints = self.tree().with_replaced(former.reference.number, by.clone()).references();
        self.adopt(&mut metadata, next, &written).await?;
        self.replace_tree(|tree| tree.with_replaced(former.reference.number, by));
        drop(metadata);
        let was = (former.reference.number, former.checkpoint.root.deleted_count > 0);
        self.applied.lock().end_part(was, output_number);
        tracing::debug!(
            table = self.table.name(),
            number = former.reference.number,
            is_done = left.is_none(),
            "a part of a checkpoint is reclaimed"
        );
        match left {
            Some(_) => self.shed.lock().push(Shed { former }),
            None => self.retired.lock().push(former),
        }
        if let Err(error) = self.remove_unused().await {
            tracing::debug!(table = self.table.name(), id = self.id, %error, "reclaimed space stays for now");
        }
        Ok(1 + merges.into_inner())
    }

    /// The checkpoint without its first rows, for readers that come from now on.
    fn without_rows_before(&self, former: &TreeCheckpoint, start: Bytes) -> Arc<TreeCheckpoint> {
        let limit = KeyRange { start, end: former.reference.limit.end.clone() };
        let reference = CheckpointReference { limit, ..former.reference.clone() };
        Arc::new(TreeCheckpoint::new(Arc::new(former.checkpoint.reopened()), reference))
    }

    /// Gives back the extents of what moved, where nobody reads it as it was.
    pub(super) async fn free_shed(&self) -> Result<(), PartitionError> {
        if self.shared.settings.planted_fault == Some(PlantedFault::FruitlessReclaim) {
            return Ok(());
        }
        let unread: BTreeSet<u64> = {
            let shed = self.shed.lock();
            let numbers: BTreeSet<u64> = shed.iter().map(Shed::number).collect();
            let is_read = |number: &u64| shed.iter().any(|one| one.is_read(*number));
            numbers.into_iter().filter(|number| !is_read(number)).collect()
        };
        for number in unread {
            let tree = self.tree();
            let now = tree.checkpoints.iter().find(|one| one.reference.number == number);
            let Some(now) = now else {
                // It has gone as a whole.
                self.forget_shed(number);
                continue;
            };
            let start = &now.reference.limit.start;
            let needed = now.checkpoint.extents_from(start, self.table.has_data()).await?;
            let stream = self.names.checkpoint(number);
            let listed = self.shared.streams.stat(&stream)?.extents;
            // The last one has the root, and may be open.
            let before_last = listed.iter().take(listed.len().saturating_sub(1)).map(|(extent, _)| *extent);
            let root = now.reference.root.extent;
            let extents: Vec<_> =
                before_last.filter(|extent| *extent != root && !needed.contains(extent)).collect();
            if !extents.is_empty() {
                self.shared.streams.multi_modify(&[StreamChange::Unlist { stream, extents }]).await?;
            }
            // Not before: what is refused now, by a full disk perhaps, is owed until it is done.
            self.forget_shed(number);
        }
        Ok(())
    }

    /// Nothing is owed of what this checkpoint was, unless somebody has begun to read it so again.
    fn forget_shed(&self, number: u64) {
        let mut shed = self.shed.lock();
        if !shed.iter().any(|one| one.is_read(number)) {
            shed.retain(|one| one.number() != number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(of: &[(u64, &[u64])]) -> Applied {
        let newer = of.iter().map(|(number, newer)| (*number, newer.iter().copied().collect()));
        Applied { newer: newer.collect(), of_part: BTreeSet::new() }
    }

    /// What one is thought to have lost and has not would come back once the deletion goes.
    #[test]
    fn what_was_lost_outlives_a_merge_and_no_more_than_that() {
        let before = || applied(&[(1, &[3, 4, 5]), (2, &[4, 5])]);
        // Of newer ones: 4 and 5 became 6.
        let mut of_newer = before();
        of_newer.note_compacted(&[(5, true), (4, true)], 6);
        assert!(of_newer.has(1, 6) && of_newer.has(2, 6));
        // 2 has not lost what 3 hides.
        let mut of_other = before();
        of_other.note_compacted(&[(4, true), (3, true)], 6);
        assert!(of_other.has(1, 6) && !of_other.has(2, 6));
        // Unless that hides nothing.
        let mut without_deletions = before();
        without_deletions.note_compacted(&[(4, true), (3, false)], 6);
        assert!(without_deletions.has(1, 6) && without_deletions.has(2, 6));
        // Of older ones: what one of them has not lost is there.
        let mut of_older = before();
        of_older.note_compacted(&[(2, true), (1, true)], 6);
        assert!(of_older.has(6, 4) && of_older.has(6, 5) && !of_older.has(6, 3));
        let mut with_unknown = before();
        with_unknown.note_compacted(&[(1, true), (9, false)], 6);
        assert!(![3, 4, 5].iter().any(|newer| with_unknown.has(6, *newer)));
    }

    #[test]
    fn a_part_has_lost_what_its_checkpoint_had_and_what_is_hidden_now_and_the_rest_has_not() {
        let mut part = applied(&[(2, &[7]), (1, &[2])]);
        part.begin_part(&[9, 8], 2);
        // While it is written newer ones are merged.
        part.note_compacted(&[(9, true), (8, true)], 10);
        part.end_part((2, true), Some(11));
        assert!([7, 8, 9, 10].iter().all(|newer| part.has(11, *newer)));
        assert!(part.has(2, 7) && ![8, 9, 10].iter().any(|newer| part.has(2, *newer)));
        assert!(part.has(1, 2) && part.has(1, 11), "it hides no more than it did");
        let mut nothing = applied(&[(2, &[7])]);
        nothing.begin_part(&[9], 2);
        nothing.end_part((2, true), None);
        assert!(nothing.of_part.is_empty() && nothing.newer.len() == 1);
    }
}
