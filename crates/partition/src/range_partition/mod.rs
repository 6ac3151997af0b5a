//! A range partition: a contiguous key range of one object table with one owner, kept in its own streams as a
//! log-structured tree.
//!
//! Here are its fields, opening and closing; each verb is a sibling: `load` (metadata and log replay),
//! `execute` (the serial section), `commit` (group commit), `data` (blob data) and `collect_data` (its
//! space), `read` (gets and scans), `flush` (memory table to checkpoint), `merge` (checkpoints to one),
//! `give_back` (what a full disk asks for besides), `memory` (its part of the budget), `hand_over` (leaving
//! to other ranges), `inherit` (what these ranges start from), `range_time` (by which operations are
//! decided), `size`.
//!
//! What always holds: rows up to `visible` are durable, rows beyond it are shown to nobody but later
//! decisions, whose replies wait. Versions are strictly increasing. The metadata stream names a checkpoint
//! before the tree shows it.

mod collect_data;
mod commit;
mod compact;
mod data;
mod empty_extents;
mod execute;
mod flush;
mod free_space;
mod hand_over;
mod idle_compaction;
mod inherit;
mod load;
mod log_positions;
mod memory;
mod range_time;
mod read;
mod reclaim;
mod shared_overflow;
mod size;

pub use collect_data::Collected;
pub use data::DataPin;
pub(crate) use execute::Executed;
pub(crate) use flush::Flush;
pub(crate) use inherit::Heir;
pub(crate) use load::{LoadError, RangeStreams, ReadRange, is_empty, read, read_metadata};
pub(crate) use read::WalkEnd;

use crate::background::maintenance::Maintenance;
use crate::background::retries::RangeName;
use crate::blob_data::data_writer::DataWriter;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::map::dead_containers::DeadContainers;
use crate::map::range_load::RangeLoad;
use crate::memory::memory_budget::MemoryBudget;
use crate::operation::{ObjectTable, RowVersion};
use crate::settings::PartitionSettings;
use crate::tree::block_cache::BlockCache;
use crate::tree::metadata::Metadata;
use crate::tree::{Tree, TreeCheckpoint};
use arc_swap::{ArcSwap, Guard};
use base::{Clock, Spawner, Ticks};
use commit::Pending;
use data::RangeData;
use load::Loaded;
use log_positions::LogPositions;
use parking_lot::Mutex;
use range_time::RangeTime;
use reclaim::{Applied, Shed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stream::{OwnerEpoch, Streams};
use tokio::sync::{Notify, Semaphore};

/// Operations that may be between their decision and their durability; further ones wait.
const PENDING_OPERATION_COUNT_MAX: usize = 8192;

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
}

/// One range partition, loaded.
pub(crate) struct RangePartition {
    table: ObjectTable,
    id: u64,
    range: KeyRange,
    shared: Shared,
    /// What it is asked for.
    pub(crate) load: RangeLoad,
    names: RangeStreams,
    epoch: OwnerEpoch,
    /// For tables with data.
    data: Option<RangeData>,
    /// Replaced only inside the serial section.
    tree: ArcSwap<Tree>,
    serial: Mutex<Serial>,
    time: RangeTime,
    /// The newest durable version.
    visible: AtomicU64,
    /// What the metadata stream says; held while it is being changed.
    metadata: tokio::sync::Mutex<Metadata>,
    log_positions: Mutex<LogPositions>,
    /// Checkpoints that were merged into others and may still have readers.
    retired: Mutex<Vec<Arc<TreeCheckpoint>>>,
    /// Numbers of checkpoints whose streams are to be removed: nothing refers to them and nobody reads them.
    /// No other one is written before that is done, so only those that were just merged and some few more are
    /// here.
    unused: Mutex<Vec<u64>>,
    /// Merges, by their ends, that give a full disk less back than was thought, until it is not full; a
    /// bounded number.
    not_worth_it: Mutex<Vec<(u64, u64)>>,
    /// The newest checkpoint of the merge that failed last because something did not read.
    failed_compaction: Mutex<Option<u64>>,
    /// Checkpoints whose first rows have moved to others, as they were before, while somebody may read them
    /// so.
    shed: Mutex<Vec<Shed>>,
    /// Which checkpoints' deletions were applied to which older ones, since the start.
    applied: Mutex<Applied>,
    /// The ends of the merge in quiet that failed last.
    failed_when_idle: Mutex<Option<(u64, u64)>>,
    /// Held during a flush, and by a hand-over that copies what is in memory.
    flushing: tokio::sync::Mutex<()>,
    /// Held during a merge, and by a hand-over, which wants no other changes to the checkpoints.
    merging: tokio::sync::Mutex<()>,
    /// Bytes of the checkpoints that are being merged.
    compacting_bytes: AtomicU64,
    /// Whether merges find rows that newer ones have replaced.
    replaces_rows: AtomicBool,
    /// A hand-over has begun: merges give up.
    leaving: AtomicBool,
    /// A hand-over copies what is in memory: nothing is flushed.
    keeps_memory: AtomicBool,
    /// Until then, in milliseconds of the clock, what gives space back takes what there is.
    floor_waived_until_ms: AtomicU64,
    admission: Semaphore,
    commit_wake: Notify,
    /// A memory table was frozen: the next group of the log may begin an extent.
    begins_table: AtomicBool,
    /// Told after each flush, for writers that wait for one. They wake in the order in which they came: a
    /// simulation would not be the same each time with a `watch`, which draws lots.
    flushed: Notify,
}

/// What the serial section guards.
struct Serial {
    last_version: RowVersion,
    /// The next version is newer than this one, too.
    version_floor: RowVersion,
    pending: Pending,
    standing: Standing,
}

/// Whether operations are decided here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Open,
    /// Not now: other ranges take over, or this one goes on if that fails.
    HandingOver,
    /// Never again: other ranges have taken over.
    Gone,
    /// Not until the next start, for this reason.
    Closed(PartitionError),
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
    fn start(shared: Shared, table: ObjectTable, id: u64, loaded: Loaded) -> Arc<Self> {
        let partition = Arc::new(RangePartition {
            table,
            id,
            range: loaded.metadata.range.clone(),
            load: RangeLoad::default(),
            names: RangeStreams::new(table, id),
            epoch: loaded.metadata.epoch,
            data: loaded.data,
            tree: ArcSwap::from_pointee(loaded.tree),
            serial: Mutex::new(Serial {
                last_version: loaded.last_version,
                version_floor: RowVersion(0),
                pending: Pending::default(),
                standing: Standing::Open,
            }),
            time: RangeTime::new(loaded.last_version, shared.clock.monotonic()),
            visible: AtomicU64::new(loaded.last_version.0),
            metadata: tokio::sync::Mutex::new(loaded.metadata),
            log_positions: Mutex::new(loaded.log_positions),
            retired: Mutex::new(Vec::new()),
            unused: Mutex::new(loaded.unused),
            not_worth_it: Mutex::new(Vec::new()),
            failed_compaction: Mutex::new(None),
            shed: Mutex::new(Vec::new()),
            applied: Mutex::default(),
            failed_when_idle: Mutex::new(None),
            flushing: tokio::sync::Mutex::new(()),
            merging: tokio::sync::Mutex::new(()),
            compacting_bytes: AtomicU64::new(0),
            replaces_rows: AtomicBool::new(true),
            leaving: AtomicBool::new(false),
            keeps_memory: AtomicBool::new(false),
            floor_waived_until_ms: AtomicU64::new(0),
            admission: Semaphore::new(PENDING_OPERATION_COUNT_MAX),
            commit_wake: Notify::new(),
            begins_table: AtomicBool::new(false),
            flushed: Notify::new(),
            shared,
        });
        partition.shared.spawner.spawn("group-commit", Box::pin(commit::run(partition.clone())));
        partition.shared.maintenance.add(&partition);
        partition
    }

    /// Its object table.
    pub(crate) fn table(&self) -> ObjectTable {
        self.table
    }

    /// Its id, part of its streams' names.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Both.
    pub(crate) fn name(&self) -> RangeName {
        (self.table, self.id)
    }

    /// The keys it owns.
    pub(crate) fn range(&self) -> &KeyRange {
        &self.range
    }

    /// Refuses further writes and waits for those under way.
    pub(crate) async fn close(&self) {
        {
            let mut serial = self.serial.lock();
            if serial.standing == Standing::Open {
                let why = PartitionError::Unavailable("the server is stopping".to_owned());
                serial.standing = Standing::Closed(why);
            }
        }
        self.commit_wake.notify_one();
        // Whoever waits for a flush holds a permit, and no flush may come any more.
        self.tell_waiting_writers();
        // All permits are free once every pending operation has its outcome. The semaphore is never closed.
        let _ = self.admission.acquire_many(PENDING_OPERATION_COUNT_MAX as u32).await;
        // A merge gives up, a flush ends, and no other begins: whoever opens the range next finds it at rest.
        let _merged = self.merging.lock().await;
        let _flushed = self.flushing.lock().await;
    }

    /// Writers that wait for a flush look again why there is none.
    pub(crate) fn tell_waiting_writers(&self) {
        self.flushed.notify_waiters();
        // If there will be no flush any more, writers of other ranges must not wait for it either.
        self.shared.maintenance.wake_flush();
    }

    /// The newest version that readers see.
    pub(crate) fn visible(&self) -> RowVersion {
        RowVersion(self.visible.load(Ordering::Acquire))
    }

    /// The time here: never before a version that readers see.
    pub(crate) fn now(&self) -> Ticks {
        let clock = &self.shared.clock;
        self.time.now(clock.now(), clock.monotonic())
    }

    /// The tree, to keep.
    fn tree(&self) -> Arc<Tree> {
        self.tree.load_full()
    }

    /// What a snapshot sees: the tree first, then the version, so that every change up to it is in that tree.
    fn snapshot(&self) -> Snapshot {
        let tree = self.tree.load();
        let visible = self.visible();
        (tree, visible)
    }
}

/// A tree and the newest version that is seen of it.
type Snapshot = (Guard<Arc<Tree>>, RowVersion);

impl Standing {
    /// Closes for `why`, unless it is closed already.
    fn close(&mut self, why: &PartitionError) {
        if !matches!(self, Standing::Closed(_)) {
            *self = Standing::Closed(why.clone());
        }
    }
}
