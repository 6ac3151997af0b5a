//! A checkpoint as a part of one range's tree, which may see only some of its rows.
//!
//! Why: after a split several ranges share a checkpoint. What always holds: rows outside of the reference's
//! limit are never shown; the bytes of a deleted container are not 0 while there is a visible row of it.

use crate::bloom::key_groups::KeyGroup;
use crate::checkpoint::{Caching, Checkpoint, CheckpointCursor, HashedKey, OverflowReads, Probe};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::map::dead_containers::DeadContainer;
use crate::tree::block_cache::HeldBlock;
use crate::tree::metadata::CheckpointReference;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A group as its checkpoints hold it.
pub(crate) type HeldGroup = Arc<HeldBlock<KeyGroup>>;

/// A checkpoint as a part of this range.
pub(crate) struct TreeCheckpoint {
    pub(crate) checkpoint: Arc<Checkpoint>,
    pub(crate) reference: CheckpointReference,
    /// Whether the range sees all of its rows.
    is_whole: bool,
    /// Its keys are in the filter of this group, too.
    pub(crate) group: Option<HeldGroup>,
    /// Counted at the first request.
    visible_bytes: OnceLock<u64>,
    /// Bytes of rows of deleted containers, by container, counted at the first request.
    dead_bytes: Mutex<BTreeMap<Bytes, u64>>,
}

impl TreeCheckpoint {
    pub(crate) fn new(checkpoint: Arc<Checkpoint>, reference: CheckpointReference) -> Self {
        let is_whole = checkpoint.root.lies_in(&reference.limit);
        let visible_bytes = OnceLock::new();
        let (group, dead_bytes) = Default::default();
        TreeCheckpoint { checkpoint, reference, is_whole, group, visible_bytes, dead_bytes }
    }

    /// Whether the range sees all of its rows.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether the key's row may be here and visible, as far as that is known at once.
    pub(crate) fn probe(&self, key: HashedKey<'_>) -> Probe<'_> {
        let shows = self.is_whole || self.reference.limit.contains(key.bytes);
        if shows { self.checkpoint.probe(key) } else { Probe::Absent }
    }

    /// Bytes of the rows that this range sees, roughly.
    pub(crate) async fn visible_bytes(&self) -> Result<u64, PartitionError> {
        if let Some(size_bytes) = self.visible_bytes.get() {
            return Ok(*size_bytes);
        }
        let size_bytes = if self.is_whole {
            self.checkpoint.root.stored_bytes
        } else {
            let blocks = self.checkpoint.blocks_in(&self.reference.limit).await?;
            blocks.iter().map(|(_, size_bytes)| size_bytes).sum()
        };
        Ok(*self.visible_bytes.get_or_init(|| size_bytes))
    }

    /// Bytes of rows of these containers, roughly; not 0 if there is any.
    pub(crate) async fn dead_bytes(&self, dead: &[DeadContainer]) -> Result<u64, PartitionError> {
        let mut size_bytes = 0;
        for container in dead {
            let counted = self.dead_bytes.lock().get(&container.prefix).copied();
            size_bytes += match counted {
                Some(counted) => counted,
                None => {
                    let counted = self.bytes_of(&container.range()).await?;
                    self.dead_bytes.lock().insert(container.prefix.clone(), counted);
                    counted
                }
            };
        }
        Ok(size_bytes)
    }

    /// Bytes of the visible rows of `range`, roughly; not 0 if there is any.
    async fn bytes_of(&self, range: &KeyRange) -> Result<u64, PartitionError> {
        let range = self.visible_part(range);
        if range.is_empty() || !self.checkpoint.root.overlaps(&range) {
            return Ok(0);
        }
        let blocks = self.checkpoint.blocks_in(&range).await?;
        let size_bytes: u64 = blocks.iter().map(|(_, size_bytes)| size_bytes).sum();
        if size_bytes > 0 {
            return Ok(size_bytes);
        }
        let (walked, heads) = (self.checkpoint.clone(), OverflowReads::None);
        let cursor = CheckpointCursor::new(walked, &range.start, Caching::Keep, heads).await?;
        Ok(u64::from(cursor.key().is_some_and(|key| range.contains(key))))
    }

    /// The part of `range` that this checkpoint is read for.
    pub(crate) fn visible_part(&self, range: &KeyRange) -> KeyRange {
        range.intersect(&self.reference.limit)
    }
}
