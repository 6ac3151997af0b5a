//! Streams of a stamp of several processes: what drives the pure functions of the crate `stamp` over two
//! stores.
//!
//! `stream` has the streams of one process on its disk; these are a stamp's, over an [`ObjectStore`] for
//! bytes and [`KeyValues`] for metadata, hence the name. `stamp` decides what each answer means; this crate
//! sends, waits and measures, and decides nothing again.
//!
//! | folder | content | later behind |
//! |---|---|---|
//! | `stores/` | the two stores as traits | |
//! | `metadata/` | their keys and values, transactions, reads | |
//! | `membership/` | incarnations, leases, beats | |
//! | `extents/` | append at a known end, seal, read, delete, list | a trait of stores of extents |
//! | `range/` | documents changed by compare; ranges change hands | a trait of catalogs of streams |
//! | `layer/` | a range's streams as the layers above use them | [`stream::StreamLayer`] |
//! | `cache/` | blocks on a local disk, bounded, safe to lose | |
//! | `collection/` | sweeps | |
//! | `backup/` | first start, backups, restore | |
//! | `migration/` | a data folder becomes a stamp, and a stamp a folder | |
//! | `snapshot/` | a stamp read at one revision, without owning or changing it | [`stream::StreamLayer`] |
//!
//! A process [joins](Life::join), [looks](RangeWatch::look) at all ranges, [takes](RangeWatch::take) some,
//! reads them, and serves them until [`OwnedRange::until_stopped`]; [`OwnedRange::go_on`] says what follows.
//! Once [`Life::ended`] it drops everything and joins anew.
//!
//! What always holds: nothing is acknowledged or read without a lease; every try of a request, every window
//! and every list of tries has a named bound; clock, chance, stores and tasks are handed in; a stored thing
//! of another stamp, of a newer format, cut or damaged is an error that names it.
//!
//! Absent: rows, requests of clients, which process takes which range.

mod backup;
mod cache;
mod collection;
mod error;
mod extents;
mod layer;
mod membership;
mod metadata;
mod migration;
mod range;
mod settings;
mod snapshot;
mod stores;
mod surroundings;

pub use backup::back_up::{back_up_all, prune_backups};
pub use backup::found::{FirstRange, found, is_founded};
pub use backup::probe::probe;
pub use backup::restore::{RestoreReport, RestoreStep, restore, restore_in_steps};
pub use cache::block_cache::{BlockCache, CacheReading};
pub use cache::index::CacheBounds;
pub use collection::sweep::{Sweeper, Swept};
pub use error::{AppendError, StampError};
pub use extents::load::{ExtentReader, LoadedPart};
pub use extents::log::Appended;
pub use extents::log_handle::Log;
pub use extents::read_ahead::ReadAhead;
pub use layer::replay_progress::ReplayProgress;
pub use layer::stamp_layer::StampLayer;
pub use membership::forget::{Forgotten, forget_process};
pub use membership::life::Life;
pub use membership::loops::LoopSign;
pub use metadata::forget_former::forget_former_values;
pub use metadata::wire::{LifeEntry, VALUE_FORMAT, decode_value, encode_value, parse_key};
pub use migration::MIGRATING;
pub use migration::abandon::abandon_migration;
pub use migration::error::MigrationError;
pub use migration::into_folder::migrate_into_folder;
pub use migration::into_stamp::{Migrated, migrate_into_stamp};
pub use migration::report::{MigrationPhase, MigrationProgress};
pub use range::go_on::Next;
pub use range::owned_range::OwnedRange;
pub use range::range_stop::RangeStop;
pub use range::range_watch::{RangeWatch, Taken};
pub use settings::{
    BACK_OFF_MAX, BACK_OFF_MIN, Breach, Bundles, EXTENT_SIZE_BYTES, GIVE_UP_AFTER, Planted, StampSettings,
    TRY_FOR,
};
pub use snapshot::check_extent::{DamagedObject, ExtentCheck, list_extent_objects};
pub use snapshot::parts::SnapshotParts;
pub use snapshot::snapshot_layer::SnapshotLayer;
pub use snapshot::stamp_snapshot::{SnapshotExtent, SnapshotProcess, SnapshotRange, StampSnapshot};
pub use stores::key_values::{
    KeyAnswer, KeyCompare, KeyEntry, KeyTransaction, KeyValues, ReadPage, Selection, Snapshot, StoreLease,
    StoreState,
};
pub use stores::object_store::{LIST_PAGE_NAMES_MAX, ListPage, ObjectStore};
pub use stores::store_error::StoreError;
pub use surroundings::Surroundings;
