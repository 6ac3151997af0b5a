//! The range partition as a whole: its parts, how it is opened and closed.
//!
//! What always holds: it is kept until its group commit has ended, so an operation that was decided becomes
//! durable or fails, whichever requester has gone away.

use super::blob_data_collector::BlobDataCollector;
use super::commit_pipeline::{CommitPipeline, commit};
use super::compactor::Compactor;
use super::data::RangeData;
use super::flusher::Flusher;
use super::load::{self, LoadError, Loaded, RangeOwners, RangeStreams, ReadRange};
use super::range_tree::RangeTree;
use super::reader::Reader;
use super::shared::Shared;
use super::slow_scans::SlowScans;
use crate::background::range_work::RangeWork;
use crate::background::retries::RangeName;
use crate::error::PartitionError;
use crate::heat::range_heat::RangeHeat;
use crate::key::KeyRange;
use crate::map::range_load::RangeLoad;
use crate::operation::ObjectTable;
use std::sync::Arc;
use stream::Owner;

/// One range partition, loaded.
pub(crate) struct RangePartition {
    pub(super) core: Arc<RangeTree>,
    /// What it is asked for.
    pub(crate) load: Arc<RangeLoad>,
    /// For tables with blob data.
    pub(super) data: Option<Arc<RangeData>>,
    pub(super) pipeline: Arc<CommitPipeline>,
    pub(super) flusher: Flusher,
    pub(super) compactor: Compactor,
    /// For tables with blob data.
    pub(super) collector: Option<BlobDataCollector>,
    pub(super) reader: Reader,
    /// The owner that the partition map names, if it names one.
    pub(super) named_owner: Option<Owner>,
}

impl RangePartition {
    /// Makes the streams of a range that has never held a row, unless they are there.
    pub(crate) async fn create(
        shared: &Shared,
        table: ObjectTable,
        id: u64,
        range: KeyRange,
    ) -> Result<(), PartitionError> {
        load::create(shared, &RangeStreams::new(table, id), range).await
    }

    /// Takes over the range that was read for its owner and starts its group commit.
    pub(crate) async fn open(
        shared: Shared,
        (table, id): RangeName,
        read: ReadRange,
        owners: RangeOwners,
    ) -> Result<Arc<Self>, LoadError> {
        let loaded = read.take_over(&shared, owners).await?;
        shared.metrics.replayed.add(loaded.replayed);
        tracing::info!(
            table = table.name(),
            id,
            replayed = loaded.replayed,
            checkpoints = loaded.tree.checkpoints.len(),
            "range is loaded"
        );
        Ok(Self::start(shared, (table, id), loaded))
    }

    /// Starts to serve a range from what was loaded.
    pub(super) fn start(shared: Shared, (table, id): RangeName, mut loaded: Loaded) -> Arc<Self> {
        let (data, named_owner) = (loaded.data.take().map(Arc::new), loaded.named_owner);
        let (one_in, sketches) = (shared.settings.heat_sample_one_in, shared.memory.sketches.clone());
        let load = Arc::new(RangeLoad::new(RangeHeat::new(shared.clock.clone(), one_in, sketches)));
        let core = Arc::new(RangeTree::new(shared, table, id, loaded));
        let slow_scans = Arc::<SlowScans>::default();
        let pipeline = Arc::new(CommitPipeline::new(core.clone(), data.clone(), load.clone()));
        let collector = data.clone().map(|data| BlobDataCollector::new(core.clone(), data));
        let partition = Arc::new(RangePartition {
            load,
            data,
            pipeline: pipeline.clone(),
            flusher: Flusher { core: core.clone() },
            compactor: Compactor::new(core.clone(), slow_scans.clone()),
            collector,
            reader: Reader::new(core.clone(), slow_scans),
            core: core.clone(),
            named_owner,
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
