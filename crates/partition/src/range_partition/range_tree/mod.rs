//! What all parts of a range share: which range it is, its tree, the serial section that changes the tree,
//! what its metadata stream says, and what keeps its parts out of each other's way.
//!
//! Here are its fields; its verbs are in `write_checkpoint`, `remove_unused` (what replaced checkpoints
//! leave), `tombstones`, `hand_over` and `size`. The parts (commit pipeline, flusher, compactor, blob data
//! collector, reader) know this and not each other. What always holds: the tree is replaced only inside the
//! serial section; rows up to `visible` are durable, rows beyond it are shown to later decisions only, whose
//! replies wait; the metadata stream names a checkpoint before the tree shows it.

pub(crate) mod hand_over;
mod lease;
pub(crate) mod log_positions;
pub(crate) mod pending;
mod remove_unused;
pub(crate) mod replaced;
pub(crate) mod shared_overflow;
mod size;
pub(crate) mod tombstones;
pub(crate) mod write_checkpoint;

use crate::background::retries::RangeName;
use crate::checkpoint::Caching;
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::memory::choose_flush::RangeMemory;
use crate::memory::memory_budget::MemoryBudget;
use crate::memory::write_pace::WriteTurns;
use crate::operation::{ObjectTable, RowVersion};
use crate::range_partition::load::{Loaded, RangeStreams};
use crate::range_partition::shared::Shared;
use crate::settings::FROZEN_TABLE_COUNT_MAX;
use crate::tree::Tree;
use crate::tree::merging_iterator::MergingIterator;
use crate::tree::metadata::Metadata;
use arc_swap::{ArcSwap, Guard};
use base::BoxFuture;
use log_positions::LogPositions;
use parking_lot::Mutex;
use pending::Pending;
use replaced::Replaced;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stream::Owner;
use tokio::sync::Notify;

/// Work that only a full disk asks for is worth it if it frees this part of a memory table's size.
const GAIN_DIVISOR: u64 = 32;

/// What the parts of a range share.
pub(super) struct RangeTree {
    pub(super) table: ObjectTable,
    pub(super) id: u64,
    pub(super) range: KeyRange,
    pub(super) shared: Shared,
    pub(super) names: RangeStreams,
    /// For whom its streams are changed.
    pub(super) owner: Owner,
    /// Replaced only inside the serial section.
    pub(super) tree: ArcSwap<Tree>,
    pub(super) serial: Mutex<Serial>,
    pub(super) log: LogState,
    /// What the metadata stream says; held while it is being changed.
    pub(super) metadata: tokio::sync::Mutex<Metadata>,
    pub(super) replaced: Replaced,
    pub(super) gate: Gate,
}

/// The commit log.
pub(super) struct LogState {
    /// The newest durable version.
    pub(super) visible: AtomicU64,
    pub(super) positions: Mutex<LogPositions>,
    /// A memory table was frozen: the next group of the log may begin an extent.
    pub(super) begins_table: AtomicBool,
    /// Wakes the group commit.
    pub(super) wake: Notify,
}

impl LogState {
    /// The next group begins a memory table.
    pub(super) fn begin_table(&self) {
        self.positions.lock().begin_table();
        self.begins_table.store(true, Ordering::Release);
    }
}

/// What keeps flushes, compactions and hand-overs apart.
pub(super) struct Gate {
    /// Held during a flush, and by a hand-over that copies what is in memory.
    pub(super) flushing: tokio::sync::Mutex<()>,
    /// Held during a compaction, and by a hand-over, which wants no other changes to the checkpoints.
    pub(super) merging: tokio::sync::Mutex<()>,
    /// A hand-over has begun: compactions give up.
    pub(super) leaving: AtomicBool,
    /// A hand-over copies what is in memory: nothing is flushed.
    pub(super) keeps_memory: AtomicBool,
    /// When the flush under way began, in microseconds of monotonic time; 0: there is none.
    pub(super) flush_began_us: AtomicU64,
    /// Of writers that are slowed.
    pub(super) turns: WriteTurns,
    /// Notified after each flush, for writers that wait for one. They wake in the order in which they came: a
    /// simulation would not be the same each time with a `watch`, which draws lots.
    pub(super) flushed: Notify,
}

/// What the serial section guards.
pub(super) struct Serial {
    pub(super) last_version: RowVersion,
    /// The next version is newer than this one, too.
    pub(super) version_floor: RowVersion,
    pub(super) pending: Pending,
    pub(super) standing: Standing,
}

/// Whether operations are decided here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Open,
    /// Not now: other ranges take over, or this one goes on if that fails.
    HandingOver,
    /// Never again: other ranges have taken over.
    Gone,
    /// Not until the next start, for this reason.
    Closed(PartitionError),
}

impl Standing {
    /// Closes for `why`, unless it is closed already.
    pub(super) fn close(&mut self, why: &PartitionError) {
        if !matches!(self, Standing::Closed(_)) {
            *self = Standing::Closed(why.clone());
        }
    }
}

/// A tree and the newest version that is seen of it.
pub(super) type Snapshot = (Guard<Arc<Tree>>, RowVersion);

impl RangeTree {
    /// What was loaded, or inherited. The blob data is not part of it.
    pub(super) fn new(shared: Shared, table: ObjectTable, id: u64, loaded: Loaded) -> Self {
        RangeTree {
            table,
            id,
            range: loaded.metadata.range.clone(),
            shared,
            names: RangeStreams::new(table, id),
            owner: loaded.owner,
            tree: ArcSwap::from_pointee(loaded.tree),
            serial: Mutex::new(Serial {
                last_version: loaded.last_version,
                version_floor: RowVersion(0),
                pending: Pending::default(),
                standing: Standing::Open,
            }),
            log: LogState {
                visible: AtomicU64::new(loaded.last_version.0),
                positions: Mutex::new(loaded.log_positions),
                begins_table: AtomicBool::new(false),
                wake: Notify::new(),
            },
            metadata: tokio::sync::Mutex::new(loaded.metadata),
            replaced: Replaced::new(loaded.unused),
            gate: Gate {
                flushing: tokio::sync::Mutex::new(()),
                merging: tokio::sync::Mutex::new(()),
                leaving: AtomicBool::new(false),
                keeps_memory: AtomicBool::new(false),
                flush_began_us: AtomicU64::new(0),
                turns: WriteTurns::default(),
                flushed: Notify::new(),
            },
        }
    }

    /// Table and id.
    pub(super) fn name(&self) -> RangeName {
        (self.table, self.id)
    }

    /// The tree, to keep.
    pub(super) fn tree(&self) -> Arc<Tree> {
        self.tree.load_full()
    }

    /// The newest version that readers see.
    pub(super) fn visible(&self) -> RowVersion {
        RowVersion(self.log.visible.load(Ordering::Acquire))
    }

    /// What a snapshot sees: the tree first, then the version, so that every change up to it is in that tree.
    pub(super) fn snapshot(&self) -> Snapshot {
        let tree = self.tree.load();
        let visible = self.visible();
        (tree, visible)
    }

    /// Puts another tree in place.
    pub(super) fn replace_tree(&self, change: impl FnOnce(&Tree) -> Tree) {
        let _serial = self.serial.lock();
        let next = change(&self.tree.load());
        self.tree.store(Arc::new(next));
    }

    /// Writers that wait for a flush look again why there is none.
    pub(super) fn tell_waiting_writers(&self) {
        self.gate.flushed.notify_waiters();
        // If there will be no flush any more, writers of other ranges must not wait for it either.
        self.shared.maintenance.wake_flush();
    }

    /// Freezes the table that takes changes, unless it is empty.
    pub(super) fn freeze_active(&self) {
        self.freeze_active_if(|_| true);
    }

    /// The same, if the tree is still such that it shall be frozen. Returns whether it was.
    pub(super) fn freeze_active_if(&self, shall_be_frozen: impl FnOnce(&Tree) -> bool) -> bool {
        let serial = self.serial.lock();
        let tree = self.tree.load();
        let freezes = tree.active.size_bytes() > 0 && shall_be_frozen(&tree);
        if freezes {
            self.tree.store(Arc::new(tree.with_active_frozen(serial.last_version)));
            self.log.begin_table();
        }
        freezes
    }

    /// The budget that its tables count against.
    pub(super) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.shared.memory
    }

    /// What it holds in memory; nothing that counts, if nobody will ever flush it.
    pub(super) fn memory(&self) -> RangeMemory {
        let closed = matches!(self.serial.lock().standing, Standing::Closed(_));
        let tree = self.tree.load();
        if closed && self.visible() < self.serial.lock().last_version {
            // After a failed append a table may hold changes that never become durable, so it is never
            // flushed.
            tree.memory_tables().for_each(|memory| memory.release());
        }
        RangeMemory {
            active_bytes: tree.active.size_bytes(),
            active_groups: if closed { 0 } else { self.log.positions.lock().table_groups() },
            may_freeze: !closed && tree.frozen.len() < FROZEN_TABLE_COUNT_MAX,
        }
    }

    /// Whether its disk is full.
    pub(super) fn is_scarce(&self) -> bool {
        self.shared.streams.is_scarce()
    }

    /// Whether its disk will soon be full.
    pub(super) async fn is_tight(&self) -> bool {
        self.shared.streams.is_tight().await
    }

    /// Returns when its disk is full. It does not keep the range.
    pub(super) fn became_scarce(&self) -> BoxFuture<'static, ()> {
        let streams = self.shared.streams.clone();
        Box::pin(async move { streams.became_scarce().await })
    }

    /// Bytes that work which only a full disk asks for has to free, at least.
    pub(super) fn gain_min_bytes(&self) -> u64 {
        self.shared.settings.memory_table_size_bytes / GAIN_DIVISOR
    }

    /// Whether it holds rows of `keys`, deleted ones included.
    pub(super) async fn holds_any(&self, keys: &KeyRange) -> Result<bool, PartitionError> {
        let keys = keys.intersect(&self.range);
        if keys.is_empty() {
            return Ok(false);
        }
        let tree = self.tree();
        let newest = RowVersion(u64::MAX);
        Ok(MergingIterator::over_tree(&tree, &keys, newest, Caching::Keep).await?.row().is_some())
    }

    /// Rows of `keys` that are only in memory are on their way to a checkpoint afterwards.
    pub(super) fn flush_soon(&self, keys: &KeyRange) {
        let keys = keys.intersect(&self.range);
        let holds_some = |tree: &Tree| {
            let mut holds = false;
            tree.active.scan(&keys.start, keys.end.as_deref(), RowVersion(u64::MAX), |_, _, _| {
                holds = true;
                false
            });
            holds
        };
        // Most have none there: these end without the lock.
        if !keys.is_empty() && holds_some(&self.tree.load()) && self.freeze_active_if(holds_some) {
            self.shared.maintenance.wake_flush();
        }
    }
}
