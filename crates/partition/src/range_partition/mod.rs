//! A range partition: a contiguous key range of one object table with one owner, kept in its own streams as a
//! log-structured tree.
//!
//! Here are its fields, opening and closing; each verb is a sibling: `load` (metadata and log replay), `execute` (the
//! serial section), `commit` (group commit), `read` (gets and scans), `flush` (memory table to checkpoint), `merge`
//! (checkpoints to one).
//!
//! What always holds: rows up to `visible` are durable, rows beyond it are shown to nobody but later decisions, whose
//! replies wait. Versions are strictly increasing. The metadata stream names a checkpoint before the tree shows it.

mod commit;
mod execute;
mod flush;
mod load;
mod log_marks;
mod merge;
mod read;

pub(crate) use flush::Flush;

use crate::block_cache::BlockCache;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::maintenance::Maintenance;
use crate::metadata::Metadata;
use crate::operation::{ObjectTable, RowVersion};
use crate::settings::PartitionSettings;
use crate::tree::{Tree, TreeCheckpoint};
use base::{Clock, Environment};
use commit::Pending;
use load::RangeStreams;
use log_marks::LogMarks;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::{OwnerEpoch, Streams};
use tokio::sync::{Notify, Semaphore, watch};

/// Operations that may be between their decision and their durability; further ones wait.
const PENDING_OPERATION_COUNT_MAX: usize = 8192;

/// What ranges of a process share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) settings: PartitionSettings,
    pub(crate) maintenance: Arc<Maintenance>,
}

/// One range partition, loaded.
pub(crate) struct RangePartition {
    table: ObjectTable,
    range: KeyRange,
    shared: Shared,
    names: RangeStreams,
    epoch: OwnerEpoch,
    /// Replaced only inside the serial section.
    tree: RwLock<Arc<Tree>>,
    serial: Mutex<Serial>,
    /// The newest durable version.
    visible: AtomicU64,
    /// What the metadata stream says; held while it is being changed.
    metadata: tokio::sync::Mutex<Metadata>,
    log_marks: Mutex<LogMarks>,
    /// Checkpoints that were merged into others and may still have readers.
    retired: Mutex<Vec<Arc<TreeCheckpoint>>>,
    admission: Semaphore,
    commit_wake: Notify,
    /// Counts flushes, for writers that wait for one.
    flushed: watch::Sender<u64>,
}

/// What the serial section guards.
struct Serial {
    last_version: RowVersion,
    pending: Pending,
    /// Why nothing can be written until the next start.
    closed: Option<PartitionError>,
}

impl RangePartition {
    /// Loads the range, creating it if it does not exist, and starts its group commit.
    pub(crate) async fn open(
        env: &Environment,
        shared: Shared,
        table: ObjectTable,
        id: u64,
        range: KeyRange,
    ) -> Result<Arc<Self>, PartitionError> {
        let names = RangeStreams::new(table, id);
        let loaded = load::load(&shared, &names, range).await?;
        tracing::info!(
            table = table.name(),
            id,
            replayed = loaded.replayed,
            checkpoints = loaded.tree.checkpoints.len(),
            "range is loaded"
        );
        let partition = Arc::new(RangePartition {
            table,
            range: loaded.metadata.range.clone(),
            names,
            epoch: loaded.metadata.epoch,
            tree: RwLock::new(Arc::new(loaded.tree)),
            serial: Mutex::new(Serial {
                last_version: loaded.last_version,
                pending: Pending::default(),
                closed: None,
            }),
            visible: AtomicU64::new(loaded.last_version.0),
            metadata: tokio::sync::Mutex::new(loaded.metadata),
            log_marks: Mutex::new(loaded.log_marks),
            retired: Mutex::new(Vec::new()),
            admission: Semaphore::new(PENDING_OPERATION_COUNT_MAX),
            commit_wake: Notify::new(),
            flushed: watch::Sender::new(0),
            shared,
        });
        env.spawner.spawn("group-commit", Box::pin(commit::run(partition.clone())));
        partition.shared.maintenance.add(&partition);
        Ok(partition)
    }

    /// Refuses further writes and waits for those under way.
    pub(crate) async fn close(&self) {
        self.serial
            .lock()
            .closed
            .get_or_insert(PartitionError::Unavailable("the server is stopping".to_owned()));
        self.commit_wake.notify_one();
        // All permits are free once every pending operation has its outcome. The semaphore is never closed.
        let _ = self.admission.acquire_many(PENDING_OPERATION_COUNT_MAX as u32).await;
    }

    /// Writers that wait for a flush look again why there is none.
    pub(crate) fn tell_waiting_writers(&self) {
        self.flushed.send_modify(|_| {});
    }

    fn visible(&self) -> RowVersion {
        RowVersion(self.visible.load(Ordering::Acquire))
    }

    fn tree(&self) -> Arc<Tree> {
        self.tree.read().clone()
    }

    /// What a snapshot sees: the tree first, then the version, so that every change up to it is in that tree.
    fn snapshot(&self) -> (Arc<Tree>, RowVersion) {
        let tree = self.tree();
        let visible = self.visible();
        (tree, visible)
    }
}
