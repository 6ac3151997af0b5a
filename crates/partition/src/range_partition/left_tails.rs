//! What a merge finds out before it writes: which extents with tails stay as they are, and are listed by the new checkpoint
//! as well.
//!
//! What always holds: the heads of the rows are walked in the same way as when they are written, so that what counts as kept
//! is kept; while space is scarce nothing stays, because what a merge gives back then was reckoned without that.
//! Why, is told in `docs/decisions/2026-11-24-merges-leave-tails-where-they-are.md`.

use super::RangePartition;
use super::merge::First;
use crate::checkpoint::{Caching, RowTail, TailsRead};
use crate::choose_left_tails::{TailExtent, choose_left_tails, is_worth_counting};
use crate::error::PartitionError;
use crate::merge_cursor::MergeCursor;
use crate::tree::TreeCheckpoint;
use base::give_way;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::{ExtentId, StreamChange, StreamName};

/// Rows whose heads are looked at before requests come first.
const STEP_ROW_COUNT: u64 = 256;

/// Extents with tails that stay.
#[derive(Clone, Default)]
pub(super) struct LeftTails {
    pub(super) extents: Arc<BTreeSet<ExtentId>>,
    /// Streams that list them now.
    listed_by: Vec<StreamName>,
}

impl LeftTails {
    /// What makes a checkpoint's stream that lists them.
    pub(super) fn creation_of(&self, stream: &StreamName) -> Vec<StreamChange> {
        let extents: Vec<ExtentId> = self.extents.iter().copied().collect();
        let share = |from: &StreamName| StreamChange::ShareSome {
            from: from.clone(),
            to: stream.clone(),
            extents: extents.clone(),
        };
        let create = StreamChange::Create(stream.clone());
        std::iter::once(create).chain(self.listed_by.iter().map(share)).collect()
    }
}

impl RangePartition {
    /// The tails that stay where they are when these checkpoints are merged.
    pub(super) async fn choose_left(
        &self,
        merged: &[Arc<TreeCheckpoint>],
        keep_deleted: bool,
        first: First<'_>,
    ) -> Result<LeftTails, PartitionError> {
        // One alone is written anew to give back the space of what is dead in it, however little.
        if !self.table.has_data() || merged.len() == 1 || self.is_scarce() {
            return Ok(LeftTails::default());
        }
        let (mut merged_bytes, mut tails_size_bytes) = (0, 0);
        for checkpoint in merged {
            merged_bytes += checkpoint.checkpoint.root.stored_bytes;
            tails_size_bytes += checkpoint.checkpoint.tails_size_bytes().await?;
        }
        if !is_worth_counting(merged_bytes, tails_size_bytes) {
            return Ok(LeftTails::default());
        }
        let mut kept = self.count_kept_tails(merged, keep_deleted, first).await?;
        let streams = &self.shared.streams;
        let (mut extents, mut listed) = (Vec::new(), Vec::new());
        for checkpoint in merged {
            let stream = self.names.checkpoint(checkpoint.reference.number);
            let stat = streams.stat(&stream)?;
            for (extent, size_bytes) in &stat.extents {
                // Several may list it, if ranges were one before.
                if let Some(kept_bytes) = kept.remove(extent) {
                    extents.push(TailExtent { extent: *extent, size_bytes: *size_bytes, kept_bytes });
                }
            }
            listed.push((stream, stat.extents));
        }
        let extents = Arc::new(choose_left_tails(&extents, merged_bytes, streams.extent_size_bytes_max()));
        listed.retain(|(_, listed)| listed.iter().any(|(extent, _)| extents.contains(extent)));
        let listed_by = listed.into_iter().map(|(stream, _)| stream).collect();
        tracing::debug!(table = self.table.name(), left = extents.len(), "tails stay where they are");
        Ok(LeftTails { extents, listed_by })
    }

    /// For each extent the bytes of its tails that a merge keeps.
    async fn count_kept_tails(
        &self,
        merged: &[Arc<TreeCheckpoint>],
        keep_deleted: bool,
        first: First<'_>,
    ) -> Result<BTreeMap<ExtentId, u64>, PartitionError> {
        let heads = TailsRead::None;
        let mut rows = MergeCursor::over_checkpoints(merged, &self.range, Caching::Bypass, &heads).await?;
        let mut dead = self.shared.dead.filter(self.table);
        let mut kept = BTreeMap::new();
        let mut walked: u64 = 0;
        while let Some(row) = rows.row() {
            if walked.is_multiple_of(STEP_ROW_COUNT) {
                self.do_first(first).await?;
                give_way().await;
            }
            walked += 1;
            if let RowTail::Stored(place) = row.tail
                && (row.value.is_some() || keep_deleted)
                && !dead.drops(row.key)
            {
                *kept.entry(place.location.extent).or_default() += place.stored_size_bytes();
            }
            rows.step().await?;
        }
        Ok(kept)
    }
}
