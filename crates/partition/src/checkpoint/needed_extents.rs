//! Which extents reads of a checkpoint need.
//!
//! Why: a reclaim frees the others once it has moved the first rows. What always holds: an extent that a
//! visible row, its overflow or its index lies in is among them.

use super::cursor::{CheckpointCursor, OverflowReads, WalkReads};
use super::merged_row::RowOverflow;
use super::open_checkpoint::{Caching, Checkpoint};
use crate::error::PartitionError;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::ExtentId;

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
            let reads = WalkReads::alone(Caching::Bypass, OverflowReads::None);
            let mut rows = CheckpointCursor::new(self.clone(), start, reads).await?;
            while rows.key().is_some() {
                if let RowOverflow::Stored(place) = rows.overflow() {
                    needed.insert(place.location.extent);
                }
                rows.step().await?;
            }
        }
        Ok(needed)
    }
}
