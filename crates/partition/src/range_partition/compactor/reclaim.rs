//! Reclaiming on a full disk: one checkpoint loses the rows that newer ones hide, in parts that fit what is
//! free.
//!
//! 1. `choose_reclaim` says which one, and how much of it stays, roughly. For the next part space is claimed.
//! 2. Its first rows that stay become a checkpoint of their own, in front of it. What is left of it is read
//!    from the next row on: its reference has a later start. Both are one change of the metadata.
//! 3. Once nobody reads it as it was, its extents that only the rows before that start needed leave its
//!    stream. When nothing is left of it, it goes as a whole.
//!
//! Where its overflows lie so scattered that no extent would go in time, all of its rows become a checkpoint
//! instead whose overflows stay where they are but for those in a few extents (`choose_victims`); what is
//! left dead has its turn after that.
//!
//! What always holds: each row is seen in one of the two at any moment; an extent leaves only while no row
//! needs it that this range, an heir or a reader may see; a part takes no more than was claimed.

use crate::background::range_work::Ends;
use crate::checkpoint::OverflowReads;
use crate::compaction::choose_reclaim::{Deletions, Holding, Reclaimed, choose_reclaim};
use crate::compaction::choose_shared_overflow::OverflowExtent;
use crate::compaction::choose_victims::{choose_left_of_victims, peak_bytes};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::range_partition::compactor::Compactor;
use crate::range_partition::compactor::kept_overflows::KeptOverflows;
use crate::range_partition::range_tree::replaced::Shed;
use crate::range_partition::range_tree::shared_overflow::SharedOverflow;
use crate::range_partition::range_tree::tombstones::Tombstones;
use crate::range_partition::range_tree::write_checkpoint::{First, Room};
use crate::tree::merging_iterator::MergingIterator;
use crate::tree::metadata::CheckpointReference;
use crate::tree::{Tree, TreeCheckpoint};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use stream::{Claim, ExtentId};

/// Bytes of rows of one part, at most.
const PART_SIZE_BYTES_MAX: u64 = 64 << 20;
/// A part is not worth its files below this share of an extent.
const PART_OF_EXTENT_MIN: u64 = 4;
/// What a part's index, filters and headers take besides its rows, as a share of what is claimed.
const OVERHEAD_DIVISOR: u64 = 8;

/// Checkpoints that are tried, of those that are worth it.
const CANDIDATE_COUNT_MAX: usize = 8;
/// What compactions leave in the extents of a checkpoint besides its rows is less than one byte in so many:
/// see `choose_shared_overflow`.
const BESIDE_SHARE_DIVISOR: u64 = 8;
/// Heads of rows that are written anew free this part of their bytes at least.
const HEAD_GAIN_DIVISOR: u64 = 4;

fn with_overhead(size_bytes: u64) -> u64 {
    size_bytes.saturating_add(size_bytes / OVERHEAD_DIVISOR)
}

fn without_overhead(size_bytes: u64) -> u64 {
    size_bytes - size_bytes / OVERHEAD_DIVISOR
}

/// A checkpoint that is being reclaimed.
struct Rewrite<'a> {
    former: &'a Arc<TreeCheckpoint>,
    /// Newer ones with deletions.
    hiding: &'a [Arc<TreeCheckpoint>],
    tombstones: Tombstones,
    /// Roughly.
    kept_bytes: u64,
    /// A part of it has moved already.
    is_begun: bool,
}

impl Compactor {
    /// Takes one part off a checkpoint, if that is worth it. Returns how many were written or found empty.
    pub(crate) async fn reclaim(&self, tree: &Tree, give_up: Ends<'_>) -> Result<u64, PartitionError> {
        if !self.core.is_tight().await {
            return Ok(0);
        }
        let checkpoints = &tree.checkpoints;
        let numbers: Vec<u64> = checkpoints.iter().map(|one| one.reference.number).collect();
        self.applied.lock().keep(&numbers.iter().copied().collect());
        let dead_bytes = self.dead_bytes(checkpoints).await?;
        let mut held = Vec::with_capacity(checkpoints.len());
        for (index, checkpoint) in checkpoints.iter().enumerate() {
            let holding = self.holding(checkpoint, dead_bytes[index]).await?;
            let applied = self.applied.lock();
            let deletions = |newer: usize| match applied.has(numbers[index], numbers[newer]) {
                true => Deletions::Applied,
                false if checkpoint.may_share_keys_with(&checkpoints[newer]) => Deletions::Pending,
                false => Deletions::Apart,
            };
            held.push(Holding { deletions: (0..index).map(deletions).collect(), ..holding });
        }
        for chosen in choose_reclaim(&held, self.core.gain_min_bytes()).iter().take(CANDIDATE_COUNT_MAX) {
            let is_begun = held[chosen.index].is_begun;
            if let Some(count) = self.reclaim_chosen(tree, chosen, is_begun, give_up).await? {
                return Ok(count);
            }
        }
        Ok(0)
    }

    /// Whether a part of it has moved already.
    pub(super) fn is_begun(&self, checkpoint: &TreeCheckpoint) -> bool {
        checkpoint.reference.limit.start > self.core.range.start
    }

    /// Takes one part off this checkpoint. `None`: there is no room for that.
    async fn reclaim_chosen(
        &self,
        tree: &Tree,
        chosen: &Reclaimed,
        is_begun: bool,
        give_up: Ends<'_>,
    ) -> Result<Option<u64>, PartitionError> {
        let checkpoints = &tree.checkpoints;
        let newer: Vec<u64> = checkpoints[..chosen.index].iter().map(|one| one.reference.number).collect();
        let former = checkpoints[chosen.index].clone();
        let hiding = checkpoints[..chosen.index].iter().filter(|one| one.checkpoint.root.deleted_count > 0);
        let hiding: Vec<Arc<TreeCheckpoint>> = hiding.cloned().collect();
        let merges = AtomicU64::new(0);
        let run = [former.clone()];
        let first = self.newer_than(&run, give_up, &merges);
        let first = First::Interlude(&first);
        let rewrite = Rewrite {
            former: &former,
            hiding: &hiding,
            tombstones: self.tombstones_of(tree, chosen),
            kept_bytes: chosen.kept_bytes,
            is_begun,
        };
        // Before anything is looked at: newer ones may be merged meanwhile.
        self.applied.lock().begin_part(&newer, former.reference.number);
        let Some((claim, left)) = self.claim_for(&rewrite, first).await? else { return Ok(None) };
        let size_bytes = without_overhead(claim.size_bytes());
        let mut rest = None;
        let (room, reads, left) = match left {
            Some(left) => (Room::AtMost(u64::MAX), OverflowReads::NotIn(left.extents.clone()), left),
            None => {
                let room = Room::Part { size_bytes, rest: &mut rest, after: None };
                (room, OverflowReads::All, SharedOverflow::default())
            }
        };
        let rows = MergingIterator::over_unhidden(&hiding, &former, &self.core.range, &reads).await?;
        let written = self.core.write_checkpoint(rows, &rewrite.tombstones, first, room, &left).await?;
        drop((claim, run));
        let output = self.core.open_written(&written, |_| None).await?;
        let left = rest.map(|start| self.without_rows_before(&former, start));
        let output_number = output.as_ref().map(|output| output.reference.number);
        let by: Vec<Arc<TreeCheckpoint>> = output.into_iter().chain(left.clone()).collect();
        let mut metadata = self.core.metadata.lock().await;
        let mut next = metadata.clone();
        next.checkpoints = self.core.tree().with_replaced(former.reference.number, by.clone()).references();
        self.core.adopt(&mut metadata, next, &written).await?;
        if left.is_some() {
            self.core.replaced.shed.lock().push(Shed { former: former.clone() });
        }
        self.core.replace_tree(|tree| tree.with_replaced(former.reference.number, by));
        drop(metadata);
        let was = (former.reference.number, former.checkpoint.root.deleted_count > 0);
        self.applied.lock().end_part(was, output_number);
        tracing::debug!(
            table = self.core.table.name(),
            number = former.reference.number,
            is_done = left.is_none(),
            "a part of a checkpoint is reclaimed"
        );
        match left {
            Some(_) => drop(former),
            None => self.core.replaced.retired.lock().push(former),
        }
        if let Err(error) = self.core.remove_unused().await {
            tracing::debug!(table = self.core.table.name(), id = self.core.id, %error, "reclaimed space stays for now");
        }
        Ok(Some(1 + merges.into_inner()))
    }

    /// Those that a checkpoint keeps.
    fn tombstones_of(&self, tree: &Tree, chosen: &Reclaimed) -> Tombstones {
        match chosen.drops_deletions {
            true => Tombstones::none(),
            false => self.core.tombstones_over(tree.checkpoints[chosen.index + 1..].to_vec().into()),
        }
    }

    /// What a checkpoint holds, but for what was applied to it.
    async fn holding(&self, checkpoint: &TreeCheckpoint, dead_bytes: u64) -> Result<Holding, PartitionError> {
        let root = &checkpoint.checkpoint.root;
        let size_bytes = checkpoint.visible_bytes().await?;
        let scaled = |count: u64| {
            let scaled = u128::from(count) * u128::from(size_bytes) / u128::from(root.stored_bytes.max(1));
            u64::try_from(scaled).unwrap_or(count).min(count)
        };
        let mut beside_bytes = 0;
        // Of another one rows of other ranges, or rows that have moved, are beside.
        if self.core.table.has_data() && checkpoint.is_whole() {
            let listed_bytes: u64 = self.sizes_of_extents(checkpoint)?.map(|(_, length)| length).sum();
            let bytes = listed_bytes.saturating_sub(root.stored_bytes);
            // A compaction leaves a little.
            beside_bytes = if bytes >= listed_bytes / BESIDE_SHARE_DIVISOR { bytes } else { 0 };
        }
        Ok(Holding {
            size_bytes,
            row_count: scaled(root.row_count),
            deleted_count: scaled(root.deleted_count),
            dead_bytes,
            beside_bytes,
            is_begun: self.is_begun(checkpoint),
            deletions: Vec::new(),
        })
    }

    /// The extents of a checkpoint's stream.
    pub(super) fn sizes_of_extents(
        &self,
        checkpoint: &TreeCheckpoint,
    ) -> Result<impl Iterator<Item = (ExtentId, u64)> + use<>, PartitionError> {
        let stream = self.core.names.checkpoint(checkpoint.reference.number);
        Ok(self.core.shared.streams.stat(&stream)?.extents.into_iter())
    }

    /// Claims space for the next part, or for all rows where overflows stay that it names. `None`: there is
    /// no room.
    async fn claim_for(
        &self,
        rewrite: &Rewrite<'_>,
        first: First<'_>,
    ) -> Result<Option<(Claim, Option<SharedOverflow>)>, PartitionError> {
        let streams = &self.core.shared.streams;
        let extent_part = streams.extent_size_bytes_max() / PART_OF_EXTENT_MIN;
        let wanted = |most_bytes| with_overhead(rewrite.kept_bytes.min(most_bytes).max(extent_part));
        // What is begun is ended in the same way.
        if self.core.table.has_data() && !rewrite.is_begun {
            let all_bytes = wanted(u64::MAX);
            let mut least_bytes = extent_part;
            let mut kept = None;
            loop {
                let Some(claim) = streams.claim(all_bytes, least_bytes).await else { return Ok(None) };
                if claim.size_bytes() >= all_bytes {
                    break;
                }
                let room_bytes = without_overhead(claim.size_bytes());
                if kept.is_none() {
                    kept = self.count_if_heads_fit(rewrite, room_bytes, first).await?;
                }
                let Some(kept) = &kept else { break };
                // Each part has the least size at least.
                let peak_bytes = peak_bytes(kept.passed(self.sizes_of_extents(rewrite.former)?));
                if peak_bytes.saturating_add(extent_part) <= room_bytes {
                    break;
                }
                if let Some(left) = self.leave_all_but_victims(rewrite, kept, room_bytes)? {
                    return Ok(Some((claim, Some(left))));
                }
                // A rewrite in key order would end with less room and nothing to show for it. The reserve may
                // have more.
                least_bytes = 2 * claim.size_bytes();
            }
        }
        let claim = streams.claim(wanted(PART_SIZE_BYTES_MAX.max(extent_part)), extent_part).await;
        Ok(claim.map(|claim| (claim, None)))
    }

    /// What of the checkpoint is kept; `None`: not even the heads of its rows fit.
    async fn count_if_heads_fit(
        &self,
        rewrite: &Rewrite<'_>,
        room_bytes: u64,
        first: First<'_>,
    ) -> Result<Option<KeptOverflows>, PartitionError> {
        let former = rewrite.former;
        let overflow_bytes = former.checkpoint.overflow_size_bytes(&former.reference.limit.start).await?;
        if former.visible_bytes().await?.saturating_sub(overflow_bytes) > room_bytes {
            return Ok(None);
        }
        let heads = OverflowReads::None;
        let rows = MergingIterator::over_unhidden(rewrite.hiding, former, &self.core.range, &heads).await?;
        let last_overflows = former.checkpoint.last_overflows_from(&former.reference.limit.start).await?;
        Ok(Some(self.count_kept_overflows(rows, &rewrite.tombstones, first, last_overflows).await?))
    }

    /// The overflows that stay where they are while the deadest extents are emptied, if that is worth it.
    fn leave_all_but_victims(
        &self,
        rewrite: &Rewrite<'_>,
        kept: &KeptOverflows,
        room_bytes: u64,
    ) -> Result<Option<SharedOverflow>, PartitionError> {
        let extents: Vec<OverflowExtent> = kept.extents(self.sizes_of_extents(rewrite.former)?).collect();
        // The heads, too, must be worth being written once more.
        let gain_min_bytes = self.core.gain_min_bytes().max(kept.head_bytes / HEAD_GAIN_DIVISOR);
        let left = choose_left_of_victims(&extents, kept.head_bytes, room_bytes, gain_min_bytes);
        let number = rewrite.former.reference.number;
        tracing::debug!(
            table = self.core.table.name(),
            number,
            extents = extents.len(),
            left = left.as_ref().map(BTreeSet::len),
            head_bytes = kept.head_bytes,
            room_bytes,
            "overflows of a checkpoint lie scattered"
        );
        let listed_by = vec![self.core.names.checkpoint(number)];
        Ok(left.map(|left| SharedOverflow { extents: Arc::new(left), listed_by }))
    }

    /// The checkpoint without its first rows, for readers that come from now on.
    pub(super) fn without_rows_before(&self, former: &TreeCheckpoint, start: Bytes) -> Arc<TreeCheckpoint> {
        let limit = KeyRange { start, end: former.reference.limit.end.clone() };
        let reference = CheckpointReference { limit, ..former.reference.clone() };
        Arc::new(TreeCheckpoint::new(Arc::new(former.checkpoint.reopened()), reference))
    }
}
