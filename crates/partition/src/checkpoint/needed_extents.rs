//! Which extents reads of a checkpoint need.
//!
//! Why: a reclaim frees the others once it has moved the first rows. What always holds: an extent that a
//! visible row, its overflow or its index lies in is among them.

use super::cursor::{CheckpointCursor, OverflowReads, WalkReads};
use super::merged_row::RowOverflow;
use super::open_checkpoint::{Caching, Checkpoint};
use crate::error::PartitionError;
use base::give_way;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::ExtentId;

/// Rows whose heads are looked at before requests come first.
const STRIDE_ROW_COUNT: u64 = 64;

impl Checkpoint {
    /// The extents that reads of rows from `start` on need, but for the root's.
    pub(crate) async fn extents_from(
        self: &Arc<Self>,
        start: &[u8],
        has_overflow: bool,
    ) -> Result<BTreeSet<ExtentId>, PartitionError> {
        let mut needed = BTreeSet::new();
        for at in self.part_of(start)..self.root.parts.len() {
            let part = &self.root.parts[at];
            needed.extend([part.index.extent, part.filter.extent]);
            let index = self.index(at).await?;
            let entries = &index.entries[index.first_at_or_after(start)..];
            needed.extend(entries.iter().map(|entry| entry.location.extent));
        }
        if has_overflow {
            needed.extend(self.last_overflows_from(start).await?.into_keys());
        }
        Ok(needed)
    }

    /// The last key from `start` on whose overflow lies in each extent, for those that have any: reads of
    /// rows behind it do not need the extent for overflows.
    pub(crate) async fn last_overflows_from(
        self: &Arc<Self>,
        start: &[u8],
    ) -> Result<BTreeMap<ExtentId, Bytes>, PartitionError> {
        let mut last_keys = BTreeMap::new();
        let reads = WalkReads::alone(Caching::Bypass, OverflowReads::None);
        let mut rows = CheckpointCursor::new(self.clone(), start, reads).await?;
        let mut walked: u64 = 0;
        while let Some(key) = rows.key() {
            if let RowOverflow::Stored(place) = rows.overflow() {
                let last: &mut Vec<u8> = last_keys.entry(place.location.extent).or_default();
                last.clear();
                last.extend_from_slice(key);
            }
            walked += 1;
            if walked.is_multiple_of(STRIDE_ROW_COUNT) {
                give_way().await;
            }
            rows.step().await?;
        }
        Ok(last_keys.into_iter().map(|(extent, key)| (extent, key.into())).collect())
    }
}
