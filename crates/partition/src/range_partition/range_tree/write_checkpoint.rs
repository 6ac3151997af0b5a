//! Writing checkpoints of a range: rows go to a new stream, the metadata stream names it, and only then the
//! tree shows it.
//!
//! What always holds: what was written and is refused a name is removed, or each further try would leave one
//! behind; the log is trimmed after the metadata stream names the checkpoint that replaces it.

use super::RangeTree;
use super::shared_overflow::SharedOverflow;
use super::tombstones::Tombstones;
use crate::bloom::key_groups::{KeyGroup, Place};
use crate::checkpoint::{CheckpointWriter, Finished, Root};
use crate::error::PartitionError;
use crate::range_partition::load::open_checkpoint;
use crate::tree::checkpoints::Checkpoints;
use crate::tree::merging_iterator::MergingIterator;
use crate::tree::metadata::{CheckpointReference, Metadata};
use crate::tree::{HeldGroup, TreeCheckpoint};
use base::BoxFuture;
use bytes::Bytes;
use std::sync::Arc;
use stream::{ExtentId, Location, StreamName};

/// Rows between two looks at whether something else comes first.
const STEP_ROW_COUNT: u64 = 256;

/// A checkpoint that was written and that nothing refers to yet.
pub(crate) struct Written {
    number: u64,
    root: Location,
    /// Of all its keys, unless they are too many for a group.
    hashes: Option<Vec<u64>>,
}

/// How many bytes of rows a checkpoint may have.
pub(crate) enum Room<'a> {
    /// More are an error.
    AtMost(u64),
    /// It ends with the row that makes them more; the key of the next one comes back. The checkpoint `after`
    /// which it goes on becomes a part of it.
    Part { size_bytes: u64, rest: &'a mut Option<Bytes>, after: Option<&'a Root> },
}

/// Why a checkpoint was not written.
pub(crate) enum Unwritten {
    /// Its rows are more than they were allowed to be.
    TooManyBytes,
    /// It could not be.
    Failed(PartitionError),
}

impl From<PartitionError> for Unwritten {
    fn from(error: PartitionError) -> Self {
        Unwritten::Failed(error)
    }
}

impl From<Unwritten> for PartitionError {
    fn from(unwritten: Unwritten) -> Self {
        match unwritten {
            // What they are allowed to be is what there is room for.
            Unwritten::TooManyBytes => PartitionError::DiskFull,
            Unwritten::Failed(error) => error,
        }
    }
}

/// What comes before the next rows while a checkpoint is being written.
pub(crate) trait Interlude: Sync {
    /// Does it; an error ends the writing.
    fn before_rows(&self) -> BoxFuture<'_, Result<(), PartitionError>>;

    /// How many row blocks are written before requests come first.
    fn stride(&self) -> u32;

    /// Bytes of an extent of the checkpoint after which another one begins.
    fn extent_size_bytes(&self) -> u64;
}

/// Why a checkpoint is written: writers wait for a flush, and nobody for a compaction.
#[derive(Clone, Copy)]
pub(crate) enum First<'a> {
    /// A flush: nothing comes first.
    Nothing,
    /// A compaction.
    Interlude(&'a dyn Interlude),
}

impl First<'_> {
    pub(crate) async fn before_rows(self) -> Result<(), PartitionError> {
        match self {
            First::Nothing => Ok(()),
            First::Interlude(interlude) => interlude.before_rows().await,
        }
    }

    fn stride(self) -> u32 {
        match self {
            First::Nothing => 1,
            First::Interlude(interlude) => interlude.stride(),
        }
    }
}

impl RangeTree {
    /// Writes rows that have `room` as a new checkpoint stream. `None` if no row was kept. After each
    /// [`STEP_ROW_COUNT`] rows something else may come first; its error ends the writing. Overflows that are
    /// `left` stay where they are.
    pub(crate) async fn write_checkpoint(
        &self,
        mut rows: MergingIterator,
        tombstones: &Tombstones,
        first: First<'_>,
        mut room: Room<'_>,
        left: &SharedOverflow,
    ) -> Result<Option<Written>, Unwritten> {
        // Each try that was refused would leave one more behind.
        self.remove_unused().await?;
        let number = {
            let mut metadata = self.metadata.lock().await;
            metadata.next_checkpoint += 1;
            metadata.next_checkpoint - 1
        };
        let mut dead = self.shared.dead.filter(self.table);
        let stream = self.names.checkpoint(number);
        left.create(&self.shared.streams, &stream, self.owner).await.map_err(PartitionError::from)?;
        // Writers wait for a flush, and nobody for a merge, which would keep the disk from it.
        let beside = matches!(first, First::Nothing).then(|| self.shared.row_data_writer.clone());
        let streams = self.shared.streams.clone();
        let (left, has_overflow) = (left.extents.clone(), self.table.has_data());
        let mut writer =
            CheckpointWriter::new(streams, stream.clone(), self.owner, left, has_overflow, beside);
        if let Room::Part { after: Some(before), .. } = &room {
            writer.continue_after(before);
        }
        if let First::Interlude(interlude) = first {
            let written_row_count = match &room {
                Room::Part { after: Some(before), .. } => before.row_count,
                _ => 0,
            };
            writer.set_filter_bits(self.shared.cache.filter_bits_per_key(written_row_count));
            writer.end_extents_at(interlude.extent_size_bytes());
        }
        if let Some(row_count_max) = self.shared.settings.part_row_count_max {
            writer.set_part_row_count_max(row_count_max);
        }
        let mut written_bytes: u64 = 0;
        let outcome = async {
            let mut walked: u64 = 0;
            while let Some(row) = rows.row() {
                if walked.is_multiple_of(STEP_ROW_COUNT) {
                    first.before_rows().await?;
                    writer.give_way_after(first.stride());
                }
                walked += 1;
                if !dead.knows(row.key) {
                    dead.read_on_or_end(row.key).await;
                }
                if (row.value.is_some() || tombstones.keeps(row.key)) && !dead.drops(row.key) {
                    if let Room::Part { size_bytes, rest, .. } = &mut room
                        && written_bytes >= *size_bytes
                    {
                        **rest = Some(Bytes::copy_from_slice(row.key));
                        break;
                    }
                    written_bytes += row.at_hand_bytes();
                    writer.add(row).await?;
                    if let Room::AtMost(bytes_max) = room
                        && written_bytes > bytes_max
                    {
                        return Err(Unwritten::TooManyBytes);
                    }
                }
                rows.step().await?;
            }
            Ok(writer.finish().await?)
        };
        let outcome = outcome.await;
        if !matches!(first, First::Nothing) {
            self.shared.maintenance.note_compacted(written_bytes);
        }
        match outcome {
            Ok(Some(Finished { root, hashes })) => Ok(Some(Written { number, root, hashes })),
            other => {
                writer.give_up().await;
                self.discard(number).await;
                other.map(|_| None)
            }
        }
    }

    /// Opens a checkpoint that was just written, as a newer neighbour of the one that `older` finds. If that
    /// fails, nothing will ever refer to it: it is removed, or each further try would leave one behind.
    pub(crate) async fn open_written(
        &self,
        written: &Option<Written>,
        older: impl FnOnce(&Checkpoints) -> Option<usize>,
    ) -> Result<Option<Arc<TreeCheckpoint>>, PartitionError> {
        let Some(Written { number, root, hashes }) = written else { return Ok(None) };
        let number = *number;
        let reference = CheckpointReference { number, root: *root, limit: self.range.clone() };
        match open_checkpoint(&self.shared, reference).await {
            Ok(mut checkpoint) => {
                if let Some(hashes) = hashes {
                    let checkpoints = &self.tree().checkpoints;
                    checkpoint.group =
                        older(checkpoints).and_then(|at| self.group_before(checkpoints, at, hashes));
                }
                Ok(Some(Arc::new(checkpoint)))
            }
            Err(error) => {
                self.discard(number).await;
                Err(error)
            }
        }
    }

    /// The group of a checkpoint with these keys, a newer neighbour of the one at `older`; it has them from
    /// now on.
    fn group_before(&self, checkpoints: &Checkpoints, older: usize, hashes: &[u64]) -> Option<HeldGroup> {
        let merge_count = self.shared.settings.compaction_count_min;
        let group = match checkpoints.place_before(older, hashes.len() as u64, merge_count) {
            Place::Alone => return None,
            Place::Join => checkpoints[older].group.clone()?,
            Place::Found { room } => Arc::new(self.shared.cache.hold_group(KeyGroup::new(room))?),
        };
        group.add(hashes);
        Some(group)
    }

    /// Makes `next`, which refers to the checkpoint that was just written, durable and current. If that is
    /// refused, nothing refers to that checkpoint for certain: it is removed, or each further try would leave
    /// one behind.
    pub(crate) async fn adopt(
        &self,
        current: &mut Metadata,
        next: Metadata,
        written: &Option<Written>,
    ) -> Result<(), PartitionError> {
        let outcome = self.write_metadata(current, next).await;
        if let (Err(error), Some(written)) = (&outcome, written)
            && error.is_refusal()
        {
            self.discard(written.number).await;
        }
        outcome
    }

    /// Makes `next` durable, then current. An error means that it is not current.
    pub(crate) async fn write_metadata(
        &self,
        current: &mut Metadata,
        next: Metadata,
    ) -> Result<(), PartitionError> {
        let streams = &self.shared.streams;
        let written = streams.append(&self.names.metadata, self.owner, vec![next.encode()]).await?;
        *current = next;
        // From here on it has happened: an error would make the caller believe that it has not.
        if let Some(place) = written.first()
            && streams.stat(&self.names.metadata).is_ok_and(|stat| stat.extents.len() > 1)
        {
            self.trim(&self.names.metadata, place.extent).await;
        }
        Ok(())
    }

    /// Drops what a stream holds before `first_kept`. A failure costs only space: the next flush tries again,
    /// and for the log so does the next look at what a full disk gets back.
    pub(crate) async fn trim(&self, stream: &StreamName, first_kept: ExtentId) {
        if let Err(error) = self.shared.streams.trim(stream, self.owner, first_kept).await {
            tracing::warn!(%stream, %error, "a stream could not be trimmed");
        }
    }
}
