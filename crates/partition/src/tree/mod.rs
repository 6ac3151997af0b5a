//! The log-structured tree of a range at one moment: what is in memory, what is in checkpoints.
//!
//! A tree never changes; freezing, checkpointing and merging put another in its place. A reader keeps the
//! tree it started with, and with it everything that its snapshot can see.

pub(crate) mod block_cache;
pub(crate) mod checkpoints;
pub(crate) mod merging_iterator;
pub(crate) mod metadata;
mod sources;
mod tree_checkpoint;

pub(crate) use tree_checkpoint::{HeldGroup, TreeCheckpoint};

use crate::memory::memory_table::MemoryTable;
use crate::operation::RowVersion;
use crate::tree::checkpoints::Checkpoints;
use crate::tree::metadata::CheckpointReference;
use std::sync::Arc;

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
        self.with_run_replaced(merged, result)
    }

    /// The tree with the checkpoints of these numbers, which are neighbours, replaced by those, newest first.
    pub(crate) fn with_run_replaced(
        &self,
        numbers: &[u64],
        by: impl IntoIterator<Item = Arc<TreeCheckpoint>>,
    ) -> Tree {
        let is_in = |checkpoint: &Arc<TreeCheckpoint>| numbers.contains(&checkpoint.reference.number);
        let start = self.checkpoints.iter().position(is_in).unwrap_or(0);
        let count = self.checkpoints[start..].iter().take_while(|checkpoint| is_in(checkpoint)).count();
        debug_assert_eq!(count, numbers.len(), "compacted checkpoints are neighbours");
        Tree { checkpoints: self.checkpoints.with_replaced(start..start + count, by), ..self.clone() }
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
