//! The partition layer: object tables, kept as range partitions over streams.
//!
//! It knows rows, keys and operations, nothing of entities, blobs or messages. [`Partitions`] is the facade: a write
//! is an [`Operation`] whose pure decision runs in the serial section of the range that owns its rows; a read is a
//! [`Scan`] or a get over a snapshot. What holds for whoever calls: an acknowledged operation is durable and visible
//! to every later read, within one partition name operations are linearizable and transactions atomic.

mod block_cache;
mod check;
mod checkpoint;
mod checkpoints;
mod choose_emptied;
mod choose_flush;
mod choose_left_tails;
mod choose_merge;
mod choose_range_changes;
mod choose_reclaim;
mod choose_rewrite;
mod choose_split_key;
mod commit_log;
mod data_ends;
mod data_writer;
mod dead_containers;
mod decider;
mod error;
pub mod key;
mod key_filter;
mod key_groups;
mod maintenance;
mod map_copy;
mod memory_budget;
mod memory_table;
mod merge_cursor;
mod metadata;
mod operation;
mod partition_map;
mod partition_server;
mod partitions;
mod pause;
mod piece;
mod quiet;
mod range_load;
mod range_partition;
mod repair;
mod retries;
mod routes;
mod settings;
mod tree;

pub use block_cache::CacheStatistics;
pub use check::{Damage, FolderCheck, check_folder};
pub use error::PartitionError;
pub use key::{KeyRange, RowKey, RowKeyParts, Span};
pub use memory_budget::MemoryStatistics;
pub use operation::{
    Decision, OBJECT_TABLES, ObjectTable, Operation, Read, Row, RowChange, RowRef, RowVersion, Rows, Scan,
    ScanEnd, Visit,
};
pub use partitions::{PartitionStatistics, Partitions, RangeMoment, RangeStatistics};
pub use pause::Pause;
pub use piece::{DATA_BLOCK_SIZE_BYTES, PIECE_SIZE_BYTES_MAX, Piece, RowStart, put_pieces, take_pieces};
pub use range_partition::{Collected, DataPin};
pub use repair::{FolderRepair, LossOutcome, LostKeys, RemoveLost, RowLoss, repair_folder};
pub use settings::{
    MEMORY_BUDGET_SIZE_BYTES, MEMORY_BUDGET_SIZE_BYTES_MIN, OPERATION_READ_SIZE_BYTES_MAX, PartitionSettings,
    PlantedFault, SettingError,
};
