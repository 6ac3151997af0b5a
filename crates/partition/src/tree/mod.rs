//! The log-structured tree of a range at one moment: what is in memory, what is in checkpoints.
//!
//! A tree never changes; freezing, checkpointing and merging put another in its place. A reader keeps the
//! tree it started with, and with it everything that its snapshot can see.

pub(crate) mod block_cache;
pub(crate) mod checkpoints;
pub(crate) mod merging_iterator;
pub(crate) mod metadata;
mod sources;

use crate::checkpoint::{Caching, Checkpoint, CheckpointCursor, HashedKey, OverflowReads, Probe};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::map::dead_containers::DeadContainer;
use crate::memory::memory_table::MemoryTable;
use crate::operation::RowVersion;
use crate::tree::checkpoints::{Checkpoints, HeldGroup};
use crate::tree::metadata::CheckpointReference;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Memory tables and checkpoints, each list newest first. Every change in one is newer than those of the same
/// row in the ones behind it.
#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) active: Arc<MemoryTable>,
    pub(crate) frozen: Vec<Arc<FrozenTable>>,
    pub(crate) checkpoints: Checkpoints,
    /// Rises whenever changes leave memory, into a checkpoint or taken back: what was asked of checkpoints
    /// beside memory counts only while it stands still.
    pub(crate) fetch_epoch: u64,
}

/// A memory table that takes no more changes.
pub(crate) struct FrozenTable {
    pub(crate) memory: Arc<MemoryTable>,
    /// Its newest version.
    pub(crate) last_version: RowVersion,
}

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

impl Tree {
    /// All memory tables, newest first.
    pub(crate) fn memory_tables(&self) -> impl Iterator<Item = &Arc<MemoryTable>> {
        std::iter::once(&self.active).chain(self.frozen.iter().map(|frozen| &frozen.memory))
    }

    /// The tree with its active table frozen.
    pub(crate) fn with_active_frozen(&self, last_version: RowVersion) -> Tree {
        let mut frozen = vec![Arc::new(FrozenTable { memory: self.active.clone(), last_version })];
        frozen.extend(self.frozen.iter().cloned());
        Tree { active: Arc::new(self.active.successor()), frozen, ..self.clone() }
    }

    /// The tree with its oldest frozen table replaced by its checkpoint (`None`: it held nothing to keep).
    pub(crate) fn with_flushed(&self, checkpoint: Option<Arc<TreeCheckpoint>>) -> Tree {
        let mut next = self.clone();
        next.frozen.pop();
        next.checkpoints = self.checkpoints.with_replaced(0..0, checkpoint);
        next.fetch_epoch += 1;
        next
    }

    /// The tree after changes were taken back from its memory tables.
    pub(crate) fn with_taken_back(&self) -> Tree {
        Tree { fetch_epoch: self.fetch_epoch + 1, ..self.clone() }
    }

    /// The tree with the checkpoints numbered `merged` replaced, in place of the newest of them.
    pub(crate) fn with_merged(&self, merged: &[u64], result: Option<Arc<TreeCheckpoint>>) -> Tree {
        let is_merged = |checkpoint: &Arc<TreeCheckpoint>| merged.contains(&checkpoint.reference.number);
        let start = self.checkpoints.iter().position(is_merged).unwrap_or(0);
        let count = self.checkpoints[start..].iter().take_while(|checkpoint| is_merged(checkpoint)).count();
        debug_assert_eq!(count, merged.len(), "merged checkpoints are neighbours");
        Tree { checkpoints: self.checkpoints.with_replaced(start..start + count, result), ..self.clone() }
    }

    /// The tree with the checkpoint of this number replaced by those, newest first.
    pub(crate) fn with_replaced(&self, number: u64, by: Vec<Arc<TreeCheckpoint>>) -> Tree {
        let is_it = |checkpoint: &Arc<TreeCheckpoint>| checkpoint.reference.number == number;
        match self.checkpoints.iter().position(is_it) {
            Some(at) => Tree { checkpoints: self.checkpoints.with_replaced(at..at + 1, by), ..self.clone() },
            None => self.clone(),
        }
    }

    /// The references of its checkpoints, for the metadata.
    pub(crate) fn references(&self) -> Vec<CheckpointReference> {
        self.checkpoints.iter().map(|checkpoint| checkpoint.reference.clone()).collect()
    }
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
