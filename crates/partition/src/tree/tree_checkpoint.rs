//! A checkpoint as a part of one range's tree, which may see only some of its rows.
//!
//! Why: after a split several ranges share a checkpoint. What always holds: rows outside of the reference's
//! limit are never shown.

use crate::bloom::key_groups::KeyGroup;
use crate::bloom::key_set::KeySet;
use crate::checkpoint::{Caching, Checkpoint, CheckpointCursor, HashedKey, OverflowReads, Probe, WalkReads};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::map::dead_filter::DeadFilter;
use crate::tree::block_cache::HeldBlock;
use crate::tree::metadata::CheckpointReference;
use base::give_way;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// A group as its checkpoints hold it.
pub(crate) type HeldGroup = Arc<HeldBlock<KeyGroup>>;

/// Steps between dead containers and rows after which no row is taken to be dead. They take some
/// milliseconds.
const LOOKED_AT_COUNT_MAX: usize = 4096;

/// Bytes of rows of deleted containers, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeadBytes {
    pub(crate) size_bytes: u64,
    /// After so many changes of the marks.
    pub(crate) changes: u64,
}

/// All keys that a checkpoint may show lie in it; not each key in it is shown.
struct VisibleSpan<'a> {
    first: &'a [u8],
    last: &'a [u8],
    /// The first key behind it that is not shown.
    end: Option<&'a [u8]>,
}

impl VisibleSpan<'_> {
    fn reaches(&self, key: &[u8]) -> bool {
        key <= self.last && self.end.is_none_or(|end| key < end)
    }

    fn overlaps(&self, other: &VisibleSpan<'_>) -> bool {
        let first = self.first.max(other.first);
        self.reaches(first) && other.reaches(first)
    }
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
    /// Counted after marks of deleted containers were set.
    dead_bytes: Mutex<Option<DeadBytes>>,
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

    /// Whether a key may have visible rows in both: only if the spans of their visible keys overlap.
    pub(crate) fn may_share_keys_with(&self, other: &TreeCheckpoint) -> bool {
        self.span().overlaps(&other.span())
    }

    fn span(&self) -> VisibleSpan<'_> {
        let (root, limit) = (&self.checkpoint.root, &self.reference.limit);
        VisibleSpan {
            first: (&root.first_key).max(&limit.start),
            last: root.last_key(),
            end: limit.end.as_deref(),
        }
    }

    /// Whether the key's row may be here and visible, as far as that is known at once.
    pub(crate) fn probe(&self, key: HashedKey<'_>) -> Probe<'_> {
        let shows = self.is_whole || self.reference.limit.contains(key.bytes);
        if shows { self.checkpoint.probe(key) } else { Probe::Absent }
    }

    /// Those of the keys `among` whose rows may be here and visible. Reads filters that are not at hand.
    pub(crate) async fn keys_in(
        &self,
        keys: &[HashedKey<'_>],
        among: KeySet,
    ) -> Result<KeySet, PartitionError> {
        let shows = |at: usize| self.is_whole || self.reference.limit.contains(keys[at].bytes);
        self.checkpoint.keys_in(keys, among.filtered(shows)).await
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

    /// Bytes of rows of deleted containers, as they were counted last.
    pub(crate) fn counted_dead_bytes(&self) -> Option<DeadBytes> {
        *self.dead_bytes.lock()
    }

    /// Counts them, after so many changes of the marks. Not 0 if there is any, but where one is looked for
    /// too long in vain.
    pub(crate) async fn count_dead_bytes(
        &self,
        filter: impl Fn() -> DeadFilter,
        changes: u64,
    ) -> Result<u64, PartitionError> {
        let mut size_bytes = self.bytes_of_dead_blocks(filter()).await?;
        if size_bytes == 0 {
            size_bytes = u64::from(self.has_dead_row(filter()).await?);
        }
        *self.dead_bytes.lock() = Some(DeadBytes { size_bytes, changes });
        Ok(size_bytes)
    }

    /// Bytes of the blocks whose last row is dead: as many of the others begin with dead rows.
    async fn bytes_of_dead_blocks(&self, mut dead: DeadFilter) -> Result<u64, PartitionError> {
        let (checkpoint, limit) = (&self.checkpoint, &self.reference.limit);
        let mut size_bytes = 0;
        for part in checkpoint.parts_in(limit) {
            for (last_key, block_bytes) in checkpoint.blocks_of_part(part, limit).await? {
                dead.read_on(&last_key).await?;
                if dead.drops(&last_key) {
                    size_bytes += block_bytes;
                }
            }
            give_way().await;
        }
        Ok(size_bytes)
    }

    /// Goes from dead containers to rows and from rows to dead containers, until both are at the same.
    async fn has_dead_row(&self, mut dead: DeadFilter) -> Result<bool, PartitionError> {
        let limit = &self.reference.limit;
        let reads = WalkReads::alone(Caching::Keep, OverflowReads::None);
        let mut cursor = CheckpointCursor::new(self.checkpoint.clone(), &limit.start, reads).await?;
        for _ in 0..LOOKED_AT_COUNT_MAX {
            let Some(key) = cursor.key().filter(|key| limit.contains(key)) else { return Ok(false) };
            dead.read_on(key).await?;
            if dead.drops(key) {
                return Ok(true);
            }
            let Some(next) = dead.next_dead().cloned() else { return Ok(false) };
            cursor.seek(&next).await?;
        }
        Ok(false)
    }

    /// The part of `range` that this checkpoint is read for.
    pub(crate) fn visible_part(&self, range: &KeyRange) -> KeyRange {
        range.intersect(&self.reference.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_overlap_if_a_key_may_be_in_both() {
        let span = |first: &'static str, last: &'static str, end: Option<&'static str>| VisibleSpan {
            first: first.as_bytes(),
            last: last.as_bytes(),
            end: end.map(str::as_bytes),
        };
        for (one, other, expected) in [
            (span("b", "d", None), span("a", "c", None), true),
            (span("b", "d", None), span("d", "e", None), true),
            (span("b", "d", None), span("e", "f", None), false),
            (span("b", "d", None), span("c", "c", None), true),
            // The range ends before what they share.
            (span("b", "d", Some("d")), span("d", "e", None), false),
            (span("b", "d", Some("c")), span("a", "e", None), true),
            // Nothing of it is visible.
            (span("e", "d", None), span("a", "z", None), false),
        ] {
            assert_eq!(one.overlaps(&other), expected);
            assert_eq!(other.overlaps(&one), expected);
        }
    }
}
