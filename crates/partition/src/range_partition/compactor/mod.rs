//! Compaction: several checkpoints become one, so that reads ask few and the space of replaced rows is freed;
//! or one is written anew without the rows of deleted containers.
//!
//! What always holds: only neighbours in age are compacted; a deletion is dropped only when nothing older is
//! left that it could hide; a replaced checkpoint stays until its last reader is done.

mod applied;
mod dead_rows;
mod idle_compaction;
mod in_parts;
mod kept_overflows;
mod last_dead_count;
mod reclaim;

use self::applied::Applied;
use self::last_dead_count::LastCount;
use crate::background::range_work::Ends;
use crate::checkpoint::{Caching, OverflowReads};
use crate::compaction::choose_compaction::{
    RowsMostly, blocks_before_giving_way, choose_cheapest_compaction, choose_compaction, rows_of_compaction,
    size_bytes_before,
};
use crate::compaction::choose_part::choose_extent_size;
use crate::compaction::choose_tombstone_compaction::{
    Occasion, choose_tombstone_compaction, runs_with_deletions,
};
use crate::compaction::counts::Counts;
use crate::error::PartitionError;
use crate::range_partition::range_tree::RangeTree;
use crate::range_partition::range_tree::tombstones::Tombstones;
use crate::range_partition::range_tree::write_checkpoint::{First, Interlude, Room, Unwritten};
use crate::range_partition::slow_scans::SlowScans;
use crate::settings::PlantedFault;
use crate::tree::TreeCheckpoint;
use crate::tree::checkpoints::Checkpoints;
use crate::tree::merging_iterator::MergingIterator;
use base::BoxFuture;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) fn sizes_of(checkpoints: &[Arc<TreeCheckpoint>]) -> Vec<u64> {
    checkpoints.iter().map(|checkpoint| checkpoint.checkpoint.root.stored_bytes).collect()
}

/// What the checkpoints hold.
pub(crate) fn counts_of(checkpoints: &[Arc<TreeCheckpoint>]) -> Vec<Counts> {
    let counts = |checkpoint: &Arc<TreeCheckpoint>| {
        let root = &checkpoint.checkpoint.root;
        let (row_count, deleted_count) = (root.row_count, root.deleted_count);
        Counts { size_bytes: root.stored_bytes, row_count, deleted_count }
    };
    checkpoints.iter().map(counts).collect()
}

/// Runs that turned out to be no good for a full disk, which are remembered; then the first of them is tried
/// again.
const NOT_WORTH_IT_COUNT_MAX: usize = 32;

/// The numbers of the newest and the oldest of them, of which there is one at least.
pub(crate) fn ends_of(run: &[Arc<TreeCheckpoint>]) -> (u64, u64) {
    (run[0].reference.number, run[run.len() - 1].reference.number)
}

/// Compacts the checkpoints of a range.
pub(crate) struct Compactor {
    pub(crate) core: Arc<RangeTree>,
    /// Compactions, by their ends, that give a full disk less back than was thought, until it is not full; a
    /// bounded number.
    not_worth_it: Mutex<Vec<(u64, u64)>>,
    /// The ends of the compaction that failed last because something did not read.
    failed_compaction: Mutex<Option<(u64, u64)>>,
    /// The ends of the idle compaction that failed last.
    pub(crate) failed_when_idle: Mutex<Option<(u64, u64)>>,
    /// Which checkpoints' deletions were applied to which older ones, since the start.
    pub(crate) applied: Mutex<Applied>,
    /// Bytes of the checkpoints that are being compacted.
    pub(crate) compacting_bytes: AtomicU64,
    /// Whether compactions find rows that newer ones have replaced.
    replaces_rows: AtomicBool,
    slow_scans: Arc<SlowScans>,
    last_dead_count: Mutex<LastCount>,
    /// When tombstones in memory were flushed last because it was idle, in milliseconds of monotonic time.
    pub(crate) idle_freeze_at_ms: AtomicU64,
}

/// Before the next rows of a compaction: the end, if it has come, then small compactions that come due among
/// the checkpoints that are newer than those being compacted, of `size_bytes`. A large one takes long; if
/// small ones waited for it, reads would have to ask more and more checkpoints.
pub(crate) struct NewerFirst<'a> {
    compactor: &'a Compactor,
    give_up: Ends<'a>,
    than: u64,
    size_bytes: u64,
    compactions: &'a AtomicU64,
}

impl Interlude for NewerFirst<'_> {
    fn before_rows(&self) -> BoxFuture<'_, Result<(), PartitionError>> {
        Box::pin(async move {
            if (self.give_up)() {
                return Err(PartitionError::Unavailable("the server is stopping".to_owned()));
            }
            while let Some(newer) = self.compactor.choose_newer(self.than, self.size_bytes).await {
                let first = self.compactor.newer_than(&newer, self.give_up, self.compactions);
                let ends = ends_of(&newer);
                match self.compactor.compact_run(newer, First::Interlude(&first), u64::MAX).await {
                    Ok(()) => self.compactions.fetch_add(1, Ordering::Relaxed),
                    // What does not read holds up none of those that do: it has its turn after them.
                    Err(Unwritten::Failed(PartitionError::Storage(_))) => {
                        self.compactor.note_failed(ends);
                        return Ok(());
                    }
                    Err(error) => return Err(error.into()),
                };
            }
            Ok(())
        })
    }

    fn stride(&self) -> u32 {
        let shared = &self.compactor.core.shared;
        let checkpoint_count = shared.maintenance.most_checkpoints_to_compact();
        blocks_before_giving_way(checkpoint_count, shared.settings.compaction_count_min)
    }

    fn extent_size_bytes(&self) -> u64 {
        let core = &self.compactor.core;
        match core.table.has_data() || core.is_scarce() {
            // Overflows stay in their extents, and these are named one by one. On a full disk each extent has
            // to be paid for in the logs.
            true => u64::MAX,
            false => choose_extent_size(self.size_bytes, core.shared.settings.compaction_part_size_bytes),
        }
    }
}

impl Compactor {
    pub(crate) fn new(core: Arc<RangeTree>, slow_scans: Arc<SlowScans>) -> Self {
        Compactor {
            core,
            slow_scans,
            last_dead_count: Mutex::default(),
            idle_freeze_at_ms: AtomicU64::new(0),
            not_worth_it: Mutex::new(Vec::new()),
            failed_compaction: Mutex::new(None),
            failed_when_idle: Mutex::new(None),
            applied: Mutex::default(),
            compacting_bytes: AtomicU64::new(0),
            replaces_rows: AtomicBool::new(true),
        }
    }

    /// What comes first while these are being compacted, of which there is one at least.
    pub(crate) fn newer_than<'a>(
        &'a self,
        merged: &[Arc<TreeCheckpoint>],
        give_up: Ends<'a>,
        compactions: &'a AtomicU64,
    ) -> NewerFirst<'a> {
        let size_bytes = sizes_of(merged).iter().sum();
        NewerFirst { compactor: self, give_up, than: merged[0].reference.number, size_bytes, compactions }
    }

    /// Merges the checkpoints that are worth it. Returns how many merges that took.
    pub(crate) async fn compact(&self, closing: Ends<'_>) -> Result<u64, PartitionError> {
        let _merging = self.core.gate.merging.lock().await;
        let leaving = || self.core.gate.leaving.load(Ordering::Acquire);
        if leaving() {
            return Ok(0);
        }
        match self.compact_some(&|| closing() || leaving()).await {
            // Those who take over will choose for themselves.
            Err(_) if leaving() => Ok(0),
            other => other,
        }
    }

    async fn compact_some(&self, give_up: Ends<'_>) -> Result<u64, PartitionError> {
        self.core.remove_unused().await?;
        let tree = self.core.tree();
        // A compaction would put the parts of what is begun and the rest of it together again, for the next
        // reclaim to begin anew, without end.
        if self.core.is_scarce() && tree.checkpoints.iter().any(|one| self.is_begun(one)) {
            match self.reclaim(&tree, give_up).await {
                Ok(0) => {}
                // It is tried again below, once nothing else is left to do.
                Err(PartitionError::Storage(error)) => {
                    tracing::debug!(table = self.core.table.name(), %error, "what is begun does not read");
                }
                ended => return ended,
            }
        }
        let count_min = self.core.shared.settings.compaction_count_min;
        let is_due =
            choose_compaction(&counts_of(&tree.checkpoints), self.rows_mostly(), count_min).is_some();
        let mut bytes_max = u64::MAX;
        // What does not read must not keep those from being merged that come after it, or they would become
        // more and more, nor those before it; and these must not be tried with it again and again.
        let failed = self.failed_places(&tree.checkpoints);
        let (newer, older) = failed.as_ref().map_or((0, 0), |failed| (failed.start, failed.end));
        let mut chosen = self.choose_with_room(&tree.checkpoints[..newer], u64::MAX).await;
        if chosen.is_none() {
            let run = self.choose_with_room(&tree.checkpoints[older..], u64::MAX).await;
            chosen = run.map(|run| run.start + older..run.end + older);
        }
        if chosen.is_none() {
            let run = self.choose_for_tombstones(&tree.checkpoints[older..]).await;
            chosen = run.map(|run| run.start + older..run.end + older);
        }
        let run = match chosen {
            Some(run) => run,
            // The dead rows of one checkpoint may go where there is no room for what a merge of several might
            // keep.
            None => {
                match (self.choose_rewrite(&tree).await?, self.choose_while_scarce(&tree.checkpoints).await) {
                    (Some((index, kept_bytes)), _)
                        if self.core.shared.streams.has_room_for(kept_bytes).await =>
                    {
                        index..index + 1
                    }
                    (_, Some((run, most_bytes))) => {
                        bytes_max = most_bytes;
                        run
                    }
                    (rewrite, None) => {
                        let reclaimed_count = self.reclaim(&tree, give_up).await?;
                        let again = self.choose_with_room(&tree.checkpoints[newer..], u64::MAX).await;
                        match again.filter(|_| reclaimed_count == 0 && failed.is_some()) {
                            // Nothing else is left to do; it may read again.
                            Some(run) => run.start + newer..run.end + newer,
                            None if reclaimed_count == 0 && (is_due || rewrite.is_some()) => {
                                return Err(PartitionError::DiskFull);
                            }
                            None => return Ok(reclaimed_count),
                        }
                    }
                }
            }
        };
        let merged = tree.checkpoints[run.clone()].to_vec();
        drop(tree);
        let ends = ends_of(&merged);
        let merges = AtomicU64::new(1);
        let first = self.newer_than(&merged, give_up, &merges);
        let first = First::Interlude(&first);
        self.compacting_bytes.store(sizes_of(&merged).iter().sum(), Ordering::Relaxed);
        let outcome = self.compact_run(merged, first, bytes_max).await;
        self.compacting_bytes.store(0, Ordering::Relaxed);
        match &outcome {
            Err(Unwritten::TooManyBytes) => self.note_not_worth_it(ends),
            Err(Unwritten::Failed(PartitionError::Storage(_))) => self.note_failed(ends),
            Err(Unwritten::Failed(_)) | Ok(()) => {}
        }
        outcome?;
        Ok(merges.into_inner())
    }

    /// Where the checkpoints are of the merge that failed last because something did not read, among all
    /// there are. `None`: none did, or they were merged since.
    fn failed_places(&self, checkpoints: &[Arc<TreeCheckpoint>]) -> Option<Range<usize>> {
        let mut failed = self.failed_compaction.lock();
        let (newest, oldest) = (*failed)?;
        let place = |number| checkpoints.iter().position(|checkpoint| checkpoint.reference.number == number);
        let places = place(newest).zip(place(oldest)).map(|(start, last)| start..last + 1);
        if places.is_none() {
            *failed = None;
        }
        places
    }

    /// The merge of the checkpoints with these at its ends failed because something did not read.
    fn note_failed(&self, ends: (u64, u64)) {
        *self.failed_compaction.lock() = Some(ends);
    }

    /// Whether checkpoints wait for a merge that fails because something does not read.
    pub(crate) fn has_failed_compaction(&self) -> bool {
        self.failed_places(&self.core.tree().checkpoints).is_some()
    }

    /// How many checkpoints there are if some of them are to be merged, or are being merged; else 0.
    pub(crate) fn checkpoints_to_compact(&self) -> usize {
        let tree = self.core.tree.load();
        // One that can't be done holds up no merge of other ranges.
        let failed = self.failed_places(&tree.checkpoints);
        let end = failed.map_or(tree.checkpoints.len(), |failed| failed.start);
        let (counts, count_min) =
            (counts_of(&tree.checkpoints[..end]), self.core.shared.settings.compaction_count_min);
        let run = choose_compaction(&counts, self.rows_mostly(), count_min);
        run.map_or(0, |_| tree.checkpoints.len())
    }

    /// Bytes of the checkpoints that are being merged: their whole size, however much of them this range
    /// sees.
    pub(crate) fn compacting_bytes(&self) -> u64 {
        self.compacting_bytes.load(Ordering::Relaxed)
    }

    /// Checkpoints worth merging among those newer than the one with this number, before a merge of so many
    /// bytes goes on.
    async fn choose_newer(&self, number: u64, size_bytes: u64) -> Option<Vec<Arc<TreeCheckpoint>>> {
        let tree = self.core.tree();
        let end = tree.checkpoints.iter().position(|checkpoint| checkpoint.reference.number == number)?;
        // Once it has failed it is not tried again in between.
        let end = self.failed_places(&tree.checkpoints).map_or(end, |failed| failed.start.min(end));
        let newer = &tree.checkpoints[..end];
        Some(newer[self.choose_with_room(newer, size_bytes_before(size_bytes)).await?].to_vec())
    }

    /// The merge of these checkpoints that comes next: the preferred one if it is small enough and there is
    /// room for what it writes, else the cheapest, if that is so for it.
    async fn choose_with_room(
        &self,
        checkpoints: &[Arc<TreeCheckpoint>],
        size_bytes_max: u64,
    ) -> Option<Range<usize>> {
        let (counts, count_min) = (counts_of(checkpoints), self.core.shared.settings.compaction_count_min);
        for choose in [choose_compaction, choose_cheapest_compaction] {
            let run = choose(&counts, self.rows_mostly(), count_min)?;
            let size_bytes: u64 = sizes_of(&checkpoints[run.clone()]).iter().sum();
            if size_bytes <= size_bytes_max && self.has_room_for(&checkpoints[run.clone()]).await {
                return Some(run);
            }
        }
        None
    }

    /// See [`choose_tombstone_compaction`].
    pub(crate) fn run_with_tombstones(
        &self,
        checkpoints: &[Arc<TreeCheckpoint>],
        occasion: Occasion,
    ) -> Option<Range<usize>> {
        // A full disk has choices of its own, which know what there is room for.
        if self.core.shared.settings.planted_fault == Some(PlantedFault::StuckTombstones)
            || self.core.is_scarce()
        {
            return None;
        }
        choose_tombstone_compaction(&counts_of(checkpoints), occasion)
    }

    /// The compaction that brings tombstones to what they delete, if that is worth it and there is room.
    async fn choose_for_tombstones(&self, checkpoints: &[Arc<TreeCheckpoint>]) -> Option<Range<usize>> {
        let occasion = if self.slow_scans.are_noted(self.core.shared.clock.monotonic()) {
            Occasion::SlowScans
        } else {
            Occasion::Busy
        };
        let run = self.run_with_tombstones(checkpoints, occasion)?;
        if !self.has_room_for(&checkpoints[run.clone()]).await {
            return None;
        }
        // Those that come from now on meet others.
        self.slow_scans.forget();
        Some(run)
    }

    /// The merge that frees the most of what was deleted, if space is scarce, among those that there is
    /// room for; and how many bytes of rows it may write. What it keeps is a guess: a row that was put and
    /// deleted before it ever came to a checkpoint leaves a deletion that deletes nothing.
    async fn choose_while_scarce(&self, checkpoints: &[Arc<TreeCheckpoint>]) -> Option<(Range<usize>, u64)> {
        if !self.core.is_scarce() {
            // Until the disk is full again other rows have come and gone.
            self.not_worth_it.lock().clear();
            return None;
        }
        let counts = counts_of(checkpoints);
        for (run, kept_bytes) in runs_with_deletions(&counts, self.core.gain_min_bytes()) {
            if self.not_worth_it.lock().contains(&ends_of(&checkpoints[run.clone()])) {
                continue;
            }
            let size_bytes: u64 = counts[run.clone()].iter().map(|counts| counts.size_bytes).sum();
            // A guess that is wrong by half of the gain is still worth it.
            let roots = checkpoints[run.clone()].iter().map(|checkpoint| &checkpoint.checkpoint.root);
            let row_bytes: u64 = roots.map(|root| root.row_bytes).sum();
            for most_bytes in [(kept_bytes + size_bytes) / 2, kept_bytes + self.core.gain_min_bytes()] {
                if self.core.shared.streams.has_room_for(most_bytes).await {
                    // Of rows as they are before they are compressed.
                    let most = u128::from(most_bytes) * u128::from(row_bytes) / u128::from(size_bytes.max(1));
                    return Some((run, u64::try_from(most).unwrap_or(u64::MAX - 1)));
                }
            }
        }
        None
    }

    /// A merge of the checkpoints with these at its ends keeps more than was thought: others have their turn.
    fn note_not_worth_it(&self, ends: (u64, u64)) {
        let mut not_worth_it = self.not_worth_it.lock();
        if not_worth_it.len() == NOT_WORTH_IT_COUNT_MAX {
            not_worth_it.remove(0);
        }
        not_worth_it.push(ends);
    }

    /// Those that a compaction keeps whose oldest checkpoint has this number.
    fn tombstones_older_than(&self, oldest: Option<u64>) -> Tombstones {
        // Only these: newer ones may be replaced meanwhile, and go once nobody holds them.
        let tree = self.core.tree();
        let is_older = |one: &&Arc<TreeCheckpoint>| Some(one.reference.number) != oldest;
        let older = tree.checkpoints.iter().rev().take_while(is_older).cloned();
        let mut older: Vec<Arc<TreeCheckpoint>> = older.collect();
        older.reverse();
        self.core.tombstones_over(older.into())
    }

    /// Replaces checkpoints that are neighbours in age by one.
    pub(crate) async fn compact_run(
        &self,
        merged: Vec<Arc<TreeCheckpoint>>,
        first: First<'_>,
        bytes_max: u64,
    ) -> Result<(), Unwritten> {
        let numbers: Vec<u64> = merged.iter().map(|checkpoint| checkpoint.reference.number).collect();
        let oldest = numbers.last();
        let is_oldest = |checkpoint: &Arc<TreeCheckpoint>| Some(&checkpoint.reference.number) == oldest;
        let tombstones = self.tombstones_older_than(oldest.copied());
        if bytes_max == u64::MAX
            && let Some(part_size_bytes) = self.choose_part(&merged)
        {
            // In a box: it is rare, and each compaction would have room for it.
            return Box::pin(self.compact_in_parts(merged, &tombstones, first, part_size_bytes)).await;
        }
        let left = self.choose_left(&merged, &tombstones, first).await?;
        let overflow_reads = OverflowReads::NotIn(left.extents.clone());
        let rows =
            MergingIterator::over_checkpoints(&merged, &self.core.range, Caching::Bypass, &overflow_reads)
                .await?;
        let written =
            self.core.write_checkpoint(rows, &tombstones, first, Room::AtMost(bytes_max), &left).await?;
        let older = |checkpoints: &Checkpoints| Some(checkpoints.iter().position(is_oldest)? + 1);
        let result = self.core.open_written(&written, older).await?;
        let result_number = result.as_ref().map(|result| result.reference.number);
        self.note_rows(&merged, result.as_deref());
        let mut metadata = self.core.metadata.lock().await;
        let mut next = metadata.clone();
        // Flushes may have added newer checkpoints in the meantime; the merged ones are still neighbours.
        next.checkpoints = self.core.tree().with_merged(&numbers, result.clone()).references();
        self.core.adopt(&mut metadata, next, &written).await?;
        self.core.replace_tree(|tree| tree.with_merged(&numbers, result));
        if let Some(number) = result_number {
            let deletes = |one: &Arc<TreeCheckpoint>| one.checkpoint.root.deleted_count > 0;
            let merged: Vec<_> = merged.iter().map(|one| (one.reference.number, deletes(one))).collect();
            self.applied.lock().note_compacted(&merged, number);
        }
        drop(metadata);
        tracing::debug!(
            table = self.core.table.name(),
            count = merged.len(),
            bytes = sizes_of(&merged).iter().sum::<u64>(),
            "merged"
        );
        self.core.replaced.retired.lock().extend(merged);
        self.core.try_to_remove_unused().await;
        Ok(())
    }

    /// What the newest merge of several checkpoints told of the rows of this range.
    pub(crate) fn rows_mostly(&self) -> RowsMostly {
        if self.replaces_rows.load(Ordering::Relaxed) { RowsMostly::Replaced } else { RowsMostly::Added }
    }

    /// These were merged, to this. Rows of other ranges in them count as dropped, which the next merge puts
    /// right.
    fn note_rows(&self, merged: &[Arc<TreeCheckpoint>], result: Option<&TreeCheckpoint>) {
        if merged.len() > 1 {
            let read = merged.iter().map(|checkpoint| checkpoint.checkpoint.root.row_count).sum();
            self.note_rows_of(read, result);
        }
    }

    /// So many rows were read, of several checkpoints, and became those of one.
    fn note_rows_of(&self, read: u64, result: Option<&TreeCheckpoint>) {
        let kept = result.map_or(0, |checkpoint| checkpoint.checkpoint.root.row_count);
        let replaces = rows_of_compaction(read, kept) == RowsMostly::Replaced;
        self.replaces_rows.store(replaces, Ordering::Relaxed);
    }
}
