//! A range partition: a contiguous key range of one object table with one owner, kept in its own streams as a
//! log-structured tree.
//!
//! `partition` puts it together, opens and closes it; `delegates` and `background_work` hand calls on to its
//! parts. These share `RangeTree` and do not know each other:
//! - `CommitPipeline` (`commit_pipeline/`): from admission to reply;
//! - `Flusher` (`flusher/`): memory table to checkpoint;
//! - `Compactor` (`compactor/`): several checkpoints to one;
//! - `BlobDataCollector` (`blob_data_collector/`): space of blob data;
//! - `Reader` (`reader`): gets and scans.
//!
//! `RangeTree` and what it can do lie in `range_tree/`; `data` and `pinned_data` have the blob data itself,
//! `pinned_view` what a pinned snapshot keeps, `load` what a range starts from, `read_ahead` the same for a
//! process that does not have it yet, `inherit` what one starts from that takes over from others.
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
mod inherit;
mod load;
mod partition;
mod pinned_data;
mod pinned_view;
mod range_metrics;
mod range_tree;
mod read_ahead;
mod reader;
mod shared;
mod slow_scans;
#[cfg(test)]
mod tests;

pub(crate) use executed::Executed;
pub(crate) use inherit::Heir;
pub(crate) use load::{
    LoadError, RangeOwners, RangeStreams, ReadRange, is_empty, newest_owner, read, read_metadata,
};
pub(crate) use partition::RangePartition;
pub use pinned_data::DataPin;
pub(crate) use pinned_view::PinnedView;
pub(crate) use range_metrics::RangeMetrics;
pub use read_ahead::{is_loaded, read_ahead};
pub(crate) use reader::WalkEnd;
pub(crate) use shared::{Life, Shared};
