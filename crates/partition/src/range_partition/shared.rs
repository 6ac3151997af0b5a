//! What ranges of a process share: the stream layer, caches, budgets, background work.

use crate::background::maintenance::Maintenance;
use crate::blob_data::data_writer::DataWriter;
use crate::lease::Lease;
use crate::map::choose_owner::{choose_owner, newer};
use crate::map::dead_containers::DeadContainers;
use crate::memory::memory_budget::MemoryBudget;
use crate::range_partition::range_metrics::RangeMetrics;
use crate::settings::PartitionSettings;
use crate::tree::block_cache::BlockCache;
use base::{Clock, Random, Spawner};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use stream::{Incarnation, OwnedStream, Owner, StreamChange, StreamError, StreamName, Streams};

/// The life of this process in its stamp.
#[derive(Clone)]
pub(crate) struct Life {
    /// For which it acts.
    pub(crate) incarnation: Incarnation,
    /// How long it may answer.
    pub(crate) lease: Arc<dyn Lease>,
    /// Held by each range while it shows new durable rows, and alone by what wants all ranges at one moment.
    pub(crate) shown: Arc<RwLock<()>>,
}

/// What ranges of a process share: as many fields as there are things that a process has once, because each
/// range takes some of them.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
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
    pub(crate) life: Life,
    /// A write was refused because there is no space, since this was last looked at.
    pub(crate) was_refused_space: Arc<AtomicBool>,
}

impl Shared {
    /// The stream, to be changed by this process whoever had it before.
    pub(crate) fn taken(&self, stream: &StreamName) -> Result<OwnedStream, StreamError> {
        let seen = self.streams.owner(stream)?;
        Ok(stream.owned_by(choose_owner(seen, self.life.incarnation)))
    }

    /// The changes that remove these streams, whoever had them before.
    pub(crate) fn deletes(&self, streams: Vec<StreamName>) -> Result<Vec<StreamChange>, StreamError> {
        streams.iter().map(|stream| self.taken(stream).map(StreamChange::Delete)).collect()
    }

    /// The owner in whose name these streams of one range can be removed, whoever had them before.
    pub(crate) fn remover(&self, streams: &[StreamName]) -> Result<Owner, StreamError> {
        let owners = streams.iter().map(|stream| self.streams.owner(stream));
        let seen = owners.reduce(|seen, owner| Ok(newer(seen?, owner?)));
        Ok(choose_owner(seen.transpose()?.unwrap_or_default(), self.life.incarnation))
    }
}
