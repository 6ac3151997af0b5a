//! A range partition: a contiguous key range of one object table with one owner, kept in its own streams as a
//! log-structured tree.
//!
//! Here it is put together, opened and closed; `delegates` and `background_work` hand calls on to its parts.
//! These share `RangeTree` and do not know each other:
//! - `CommitPipeline` (`commit_pipeline/`): from admission to reply;
//! - `Flusher` (`flusher/`): memory table to checkpoint;
//! - `Compactor` (`compactor/`): several checkpoints to one;
//! - `BlobDataCollector` (`blob_data_collector/`): space of blob data;
//! - `Reader` (`reader`): gets and scans.
//!
//! What `RangeTree` can do lies in `range_tree`, `write_checkpoint`, `remove_unused`, `hand_over` and `size`;
//! `data` and `pinned_data` have the blob data itself, `load` what a range starts from, `inherit` what one
//! starts from that takes over from others.
//!
//! What always holds: rows up to `visible` are durable, rows beyond it are shown to later decisions only,
//! whose replies wait. Versions are strictly increasing. The metadata stream names a checkpoint before the
//! tree shows it.

mod background_work;
mod blob_data_collector;
mod commit_pipeline;
mod compactor;
mod data;
mod delegates;
mod executed;
mod flusher;
mod hand_over;
mod inherit;
mod load;
mod log_positions;
mod pending;
mod pinned_data;
mod range_tree;
mod reader;
mod remove_unused;
mod replaced;
mod shared;
mod shared_overflow;
mod size;
#[cfg(test)]
mod tests;
mod write_checkpoint;

pub(crate) use executed::Executed;
pub(crate) use inherit::Heir;
pub(crate) use load::{LoadError, RangeStreams, ReadRange, is_empty, read, read_metadata};
pub use pinned_data::DataPin;
pub(crate) use reader::WalkEnd;
pub(crate) use shared::Shared;

use crate::background::range_work::RangeWork;
use crate::background::retries::RangeName;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::map::range_load::RangeLoad;
use crate::operation::ObjectTable;
use blob_data_collector::BlobDataCollector;
use commit_pipeline::{CommitPipeline, commit};
use compactor::Compactor;
use data::RangeData;
use flusher::Flusher;
use load::Loaded;
use range_tree::RangeTree;
use reader::Reader;
use std::sync::Arc;

/// One range partition, loaded.
pub(crate) struct RangePartition {
    core: Arc<RangeTree>,
    /// What it is asked for.
    pub(crate) load: Arc<RangeLoad>,
    /// For tables with blob data.
    data: Option<Arc<RangeData>>,
    pipeline: Arc<CommitPipeline>,
    flusher: Flusher,
    compactor: Compactor,
    /// For tables with blob data.
    collector: Option<BlobDataCollector>,
    reader: Reader,
}

impl RangePartition {
    /// Makes the streams of a range that has never held a row, unless they are there.
    pub(crate) async fn create(
        shared: &Shared,
        table: ObjectTable,
        id: u64,
        range: KeyRange,
    ) -> Result<(), PartitionError> {
        load::create(&shared.streams, &RangeStreams::new(table, id), range).await
    }

    /// Takes over the range that was read and starts its group commit.
    pub(crate) async fn open(
        shared: Shared,
        (table, id): RangeName,
        read: ReadRange,
    ) -> Result<Arc<Self>, LoadError> {
        let loaded = read.take_over(&shared).await?;
        tracing::info!(
            table = table.name(),
            id,
            replayed = loaded.replayed,
            checkpoints = loaded.tree.checkpoints.len(),
            "range is loaded"
        );
        Ok(Self::start(shared, table, id, loaded))
    }

    /// Starts to serve a range from what was loaded.
    fn start(shared: Shared, table: ObjectTable, id: u64, mut loaded: Loaded) -> Arc<Self> {
        let data = loaded.data.take().map(Arc::new);
        let core = Arc::new(RangeTree::new(shared, table, id, loaded));
        let load = Arc::new(RangeLoad::default());
        let pipeline = Arc::new(CommitPipeline::new(core.clone(), data.clone(), load.clone()));
        let collector = data.clone().map(|data| BlobDataCollector::new(core.clone(), data));
        let partition = Arc::new(RangePartition {
            load,
            data,
            pipeline: pipeline.clone(),
            flusher: Flusher { core: core.clone() },
            compactor: Compactor::new(core.clone()),
            collector,
            reader: Reader::new(core.clone()),
            core: core.clone(),
        });
        // The range is there until its group commit has ended.
        let kept = partition.clone();
        let group_commit = async move {
            commit::run(pipeline).await;
            drop(kept);
        };
        core.shared.spawner.spawn("group-commit", Box::pin(group_commit));
        let background: Arc<dyn RangeWork> = partition.clone();
        core.shared.maintenance.add(Arc::downgrade(&background));
        partition
    }

    /// Refuses further writes and waits for those under way.
    pub(crate) async fn close(&self) {
        self.pipeline.close().await;
        // A compaction gives up, a flush ends, and no other begins: whoever opens the range next finds it at
        // rest.
        let _merged = self.core.gate.merging.lock().await;
        let _flushed = self.core.gate.flushing.lock().await;
    }
}
