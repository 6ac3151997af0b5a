//! The partition layer: object tables, kept as range partitions over streams.
//!
//! It knows rows, keys and operations, nothing of entities, blobs or messages. [`Partitions`] is the facade:
//! a write is an [`Operation`] whose pure decision runs in the serial section of the range that owns its
//! rows; a read is a [`Scan`] or a get over a snapshot. What holds for a caller: an acknowledged operation is
//! durable and visible to every later read, within one partition name operations are linearizable and
//! transactions atomic.

mod background;
mod blob_data;
mod bloom;
mod check;
mod checkpoint;
mod commit_log;
mod compaction;
mod decider;
mod error;
mod heat;
pub mod key;
mod lease;
mod map;
mod memory;
mod operation;
mod partition_server;
mod partitions;
mod pause;
mod range_moment;
mod range_partition;
mod repair;
mod settings;
mod snapshot_id;
mod statistics;
mod tree;

pub use background::range_work::Collected;
pub use blob_data::piece::{
    DATA_BLOCK_SIZE_BYTES, PIECE_SIZE_BYTES_MAX, Piece, RowStart, put_pieces, take_pieces,
};
pub use check::{Damage, FolderCheck, check_folder, check_stamp_streams, scan_stamp_streams};
pub use error::PartitionError;
pub use heat::ends::RangeEnd;
pub use heat::key_map::HeatCell;
pub use heat::tally::Tally;
pub use heat::window::{
    HEAT_WINDOW_MAX, HeatColumn, HeatQuery, HeatReport, HeatRow, PartitionHeat, RangeHeatReport,
};
pub use key::{KeyRange, RowKey, RowKeyParts, Span};
pub use lease::{EndlessLease, Lease};
pub use memory::memory_budget::MemoryStatistics;
pub use operation::{
    Decision, OBJECT_TABLES, ObjectTable, Operation, Read, Row, RowChange, RowRef, RowVersion, Rows, Scan,
    ScanEnd, Visit,
};
pub use partition_server::{
    PINNED_SNAPSHOT_AGE_MAX, PINNED_SNAPSHOT_FIRST_IDLE_MAX, PINNED_SNAPSHOT_IDLE_MAX, PINNED_SNAPSHOTS_MAX,
    PINNED_SNAPSHOTS_OF_ACCOUNT_MAX,
};
pub use partitions::Partitions;
pub use pause::Pause;
pub use range_moment::RangeMoment;
pub use range_partition::{DataPin, is_loaded, read_ahead};
pub use repair::{FolderRepair, LossOutcome, LostKeys, RemoveLost, RowLoss, repair_folder};
pub use settings::{
    HEAT_SAMPLE_ONE_IN, MEMORY_BUDGET_SIZE_BYTES, MEMORY_BUDGET_SIZE_BYTES_MIN,
    OPERATION_READ_SIZE_BYTES_MAX, PartitionSettings, PlantedFault, SettingError,
};
pub use snapshot_id::{NoSnapshotId, SnapshotId, SnapshotOf};
pub use statistics::{PartitionStatistics, RangeDetails, RangeStatistics, ServedRange};
pub use tree::block_cache::CacheStatistics;
