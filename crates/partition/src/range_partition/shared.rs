//! What ranges of a process share: the stream layer, caches, budgets, background work.

use crate::background::maintenance::Maintenance;
use crate::blob_data::data_writer::DataWriter;
use crate::map::dead_containers::DeadContainers;
use crate::memory::memory_budget::MemoryBudget;
use crate::range_partition::range_metrics::RangeMetrics;
use crate::settings::PartitionSettings;
use crate::tree::block_cache::BlockCache;
use base::{Clock, Spawner};
use std::sync::Arc;
use stream::Streams;

/// What ranges of a process share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) memory: Arc<MemoryBudget>,
    /// Containers whose rows nobody reads any more.
    pub(crate) dead: Arc<DeadContainers>,
    pub(crate) settings: PartitionSettings,
    pub(crate) maintenance: Arc<Maintenance>,
    pub(crate) data_writer: Arc<DataWriter>,
    pub(crate) row_data_writer: Arc<DataWriter>,
    pub(crate) metrics: Arc<RangeMetrics>,
}
