//! What a compaction finds out before it writes: which extents with overflows stay as they are, and are
//! listed by the new checkpoint as well.
//!
//! What always holds: the heads of the rows are walked in the same way as when they are written, so that what
//! counts as kept is kept; while space is scarce a compaction of several leaves nothing, because what it
//! frees then was reckoned without that (`reclaim` has a choice of its own). The reasons are in
//! `docs/decisions/2026-11-24-compactions-share-overflow-extents.md`.

use crate::checkpoint::{Caching, MergedRow, OverflowReads, RowOverflow};
use crate::compaction::choose_shared_overflow::{
    OverflowExtent, choose_shared_overflow, is_worth_counting, size_bytes_min,
};
use crate::compaction::choose_victims::PassedExtent;
use crate::error::PartitionError;
use crate::range_partition::compactor::Compactor;
use crate::range_partition::range_tree::shared_overflow::SharedOverflow;
use crate::range_partition::range_tree::tombstones::Tombstones;
use crate::range_partition::range_tree::write_checkpoint::First;
use crate::tree::TreeCheckpoint;
use crate::tree::merging_iterator::MergingIterator;
use base::give_way;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::ExtentId;

/// Rows whose heads are looked at before requests come first: they take some tens of microseconds.
const STRIDE_ROW_COUNT: u64 = 64;
/// And before what else comes first.
const STEP_ROW_COUNT: u64 = 256;

/// What a walk in key order keeps: bytes of heads, and of overflows in each extent.
#[derive(Default)]
pub(crate) struct KeptOverflows {
    pub(crate) head_bytes: u64,
    overflow_bytes: u64,
    kept_bytes: BTreeMap<ExtentId, u64>,
    /// Extents that the walk has not passed: their last overflow, kept or not, and the next one to be passed
    /// at the end.
    ahead: Vec<(Bytes, ExtentId)>,
    /// All that is kept before the walk has passed each extent.
    before_passed_bytes: BTreeMap<ExtentId, u64>,
}

impl KeptOverflows {
    /// Before a walk that asks when it has passed the extents with these last overflows.
    fn passing(last_overflows: BTreeMap<ExtentId, Bytes>) -> Self {
        let mut ahead: Vec<_> = last_overflows.into_iter().map(|(extent, last)| (last, extent)).collect();
        ahead.sort_unstable_by(|one, other| other.cmp(one));
        KeptOverflows { ahead, ..KeptOverflows::default() }
    }

    fn add(&mut self, row: MergedRow<'_>) {
        // A reader needs an extent up to its last overflow, though nothing shows that one's row.
        while let Some((_, extent)) = self.ahead.pop_if(|(last, _)| last.as_ref() < row.key) {
            self.before_passed_bytes.insert(extent, self.head_bytes + self.overflow_bytes);
        }
        self.head_bytes += row.at_hand_bytes();
        if let RowOverflow::Stored(place) = row.overflow {
            *self.kept_bytes.entry(place.location.extent).or_default() += place.stored_size_bytes();
            self.overflow_bytes += place.stored_size_bytes();
        }
    }

    /// Extents of these sizes with what is kept of each.
    pub(crate) fn extents(
        &self,
        sizes: impl IntoIterator<Item = (ExtentId, u64)>,
    ) -> impl Iterator<Item = OverflowExtent> {
        sizes.into_iter().map(|(extent, size_bytes)| {
            let kept_bytes = self.kept_bytes.get(&extent).copied().unwrap_or(0);
            OverflowExtent { extent, size_bytes, kept_bytes }
        })
    }

    /// When a walk in key order has passed each of them. What has no overflow has heads, perhaps up to the
    /// end.
    pub(crate) fn passed(
        &self,
        sizes: impl IntoIterator<Item = (ExtentId, u64)>,
    ) -> impl Iterator<Item = PassedExtent> {
        let all_bytes = self.head_bytes + self.overflow_bytes;
        sizes.into_iter().map(move |(extent, size_bytes)| {
            let written_bytes = self.before_passed_bytes.get(&extent).copied().unwrap_or(all_bytes);
            PassedExtent { size_bytes, written_bytes }
        })
    }
}

impl Compactor {
    /// The overflows that stay where they are when these checkpoints are merged.
    pub(crate) async fn choose_left(
        &self,
        merged: &[Arc<TreeCheckpoint>],
        tombstones: &Tombstones,
        first: First<'_>,
    ) -> Result<SharedOverflow, PartitionError> {
        // One alone is written anew to free the space of what is dead in it, however little.
        if !self.core.table.has_data() || merged.len() == 1 || self.core.is_scarce() {
            return Ok(SharedOverflow::default());
        }
        let (mut compacted_bytes, mut overflow_size_bytes) = (0, 0);
        for checkpoint in merged {
            compacted_bytes += checkpoint.checkpoint.root.stored_bytes;
            overflow_size_bytes +=
                checkpoint.checkpoint.overflow_size_bytes(&checkpoint.reference.limit.start).await?;
        }
        if !is_worth_counting(compacted_bytes, overflow_size_bytes) {
            return Ok(SharedOverflow::default());
        }
        let streams = &self.core.shared.streams;
        let size_bytes_min = size_bytes_min(compacted_bytes, streams.extent_size_bytes_max());
        // Several may list one, if ranges were one before.
        let (mut sizes, mut listed_by) = (BTreeMap::new(), Vec::new());
        for checkpoint in merged {
            let stream = self.core.names.checkpoint(checkpoint.reference.number);
            sizes.extend(streams.stat(&stream)?.extents);
            listed_by.push(stream);
        }
        sizes.retain(|_, size_bytes| *size_bytes >= size_bytes_min);
        if sizes.is_empty() {
            return Ok(SharedOverflow::default());
        }
        let heads = OverflowReads::None;
        let rows =
            MergingIterator::over_checkpoints(merged, &self.core.range, Caching::Bypass, &heads).await?;
        let kept = self.count_kept_overflows(rows, tombstones, first, BTreeMap::new()).await?;
        let extents = choose_shared_overflow(kept.extents(sizes));
        tracing::debug!(
            table = self.core.table.name(),
            left = extents.len(),
            "overflows stay where they are"
        );
        Ok(SharedOverflow { extents: Arc::new(extents), listed_by })
    }

    /// Counts what is kept of `rows`, whose overflows are not read, and when extents are passed of which
    /// these are the last overflows.
    pub(crate) async fn count_kept_overflows(
        &self,
        mut rows: MergingIterator,
        tombstones: &Tombstones,
        first: First<'_>,
        last_overflows: BTreeMap<ExtentId, Bytes>,
    ) -> Result<KeptOverflows, PartitionError> {
        let mut dead = self.core.shared.dead.filter(self.core.table);
        let mut kept = KeptOverflows::passing(last_overflows);
        let mut walked: u64 = 0;
        while let Some(row) = rows.row() {
            if walked.is_multiple_of(STEP_ROW_COUNT) {
                first.before_rows().await?;
            }
            if walked.is_multiple_of(STRIDE_ROW_COUNT) {
                give_way().await;
            }
            walked += 1;
            if !dead.knows(row.key) {
                dead.read_on_or_end(row.key).await;
            }
            if (row.value.is_some() || tombstones.keeps(row.key)) && !dead.drops(row.key) {
                kept.add(row);
            }
            rows.step().await?;
        }
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{MergedRow, OverflowPlace};
    use crate::operation::RowVersion;
    use stream::Location;

    /// A rewrite in key order began that freed nothing: extents were thought to go behind the last overflow
    /// that is kept, but hidden rows behind it needed them.
    #[test]
    fn an_extent_is_passed_behind_its_last_overflow_though_that_is_hidden() {
        let last = |key: &'static str| Bytes::from_static(key.as_bytes());
        let last_overflows = [(ExtentId(1), last("b")), (ExtentId(2), last("d")), (ExtentId(3), last("f"))];
        let mut kept = KeptOverflows::passing(last_overflows.into());
        let mut kept_bytes = Vec::new();
        for (key, extent, len) in [("a", 2, 100), ("c", 1, 10), ("e", 3, 1)] {
            let location = Location { extent: ExtentId(extent), offset: 0, len };
            let place = OverflowPlace { location, size_bytes: len };
            let (value, overflow) = (Some(&[][..]), RowOverflow::Stored(place));
            kept.add(MergedRow { key: key.as_bytes(), version: RowVersion(1), value, overflow });
            kept_bytes.push(kept.head_bytes + kept.overflow_bytes);
        }
        let sizes = [1, 2, 3, 4].map(|extent| (ExtentId(extent), 1000));
        let passed: Vec<u64> = kept.passed(sizes).map(|one| one.written_bytes).collect();
        let [a, c, e] = kept_bytes[..] else { panic!("{kept_bytes:?}") };
        assert_eq!(passed, [a, c, e, e], "the third has rows up to the end");
    }
}
