//! A range partition: a contiguous key range of one object table with one owner, kept in its own streams.
//!
//! Here are its fields, opening and closing; each verb is a sibling: `load` (metadata and log replay), `execute` (the
//! serial section), `commit` (group commit), `read` (gets and scans).
//!
//! What always holds: rows up to `visible` are durable, rows beyond it are shown to nobody but later decisions, whose
//! replies wait. Versions are strictly increasing.

mod commit;
mod execute;
mod load;
mod read;

use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::memory_table::MemoryTable;
use crate::operation::{ObjectTable, RowVersion};
use base::{Clock, Environment};
use commit::Pending;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::{OwnerEpoch, StreamName, Streams};
use tokio::sync::{Notify, Semaphore};

/// Operations that may be between their decision and their durability; further ones wait.
const PENDING_OPERATION_COUNT_MAX: usize = 8192;

/// One range partition, loaded.
pub(crate) struct RangePartition {
    table: ObjectTable,
    range: KeyRange,
    streams: Arc<Streams>,
    log: StreamName,
    epoch: OwnerEpoch,
    clock: Arc<dyn Clock>,
    memory: MemoryTable,
    serial: Mutex<Serial>,
    /// The newest durable version.
    visible: AtomicU64,
    admission: Semaphore,
    commit_wake: Notify,
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
        streams: Arc<Streams>,
        table: ObjectTable,
        id: u64,
        range: KeyRange,
    ) -> Result<Arc<Self>, PartitionError> {
        let names = load::RangeStreams::new(table, id);
        let loaded = load::load(&streams, &names, range).await?;
        tracing::info!(
            table = table.name(),
            id,
            rows = loaded.rows,
            bytes = loaded.memory.size_bytes(),
            "range is loaded"
        );
        let partition = Arc::new(RangePartition {
            table,
            range: loaded.metadata.range,
            streams,
            log: names.log,
            epoch: loaded.metadata.epoch,
            clock: env.clock.clone(),
            memory: loaded.memory,
            serial: Mutex::new(Serial {
                last_version: loaded.last_version,
                pending: Pending::default(),
                closed: None,
            }),
            visible: AtomicU64::new(loaded.last_version.0),
            admission: Semaphore::new(PENDING_OPERATION_COUNT_MAX),
            commit_wake: Notify::new(),
        });
        env.spawner.spawn("group-commit", Box::pin(commit::run(partition.clone())));
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

    fn visible(&self) -> RowVersion {
        RowVersion(self.visible.load(Ordering::Acquire))
    }
}
