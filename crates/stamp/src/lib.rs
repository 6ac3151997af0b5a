//! What a stamp of several processes adds to the layers of one: extents in an object store, one document of
//! metadata for each range, and ranges that change hands.
//!
//! Everything here is plain data and pure functions of their arguments: no I/O, no clock, no chance, no
//! runtime. The caller sends, waits and measures, and reports what came of it. So the same code runs in a
//! process, under a seed in a simulation, and in the exhaustive search of the crate `model`.
//!
//! | folder | content |
//! |---|---|
//! | `extent/` | parts, seals, appends under way, finding the end |
//! | `document/` | the document of a range and its changes |
//! | `metadata/` | transactions, and what their answers mean |
//! | `ownership/` | leases, taking and releasing ranges |
//! | `collection/` | which objects may be deleted |
//! | `backup/` | metadata twice, and its restore |
//!
//! What always holds: an acknowledged part is in the store, in an extent that no later owner has read without
//! it; whoever takes a range seals every open extent before it reads one; nothing that a document names is
//! deleted; damage is an error that names what is damaged, never an empty result.

mod backup;
mod collection;
mod document;
mod error;
mod extent;
mod ids;
mod metadata;
mod ownership;

pub use backup::backup_object::{BACKUP_FORMAT, Backup, BackupName, BackupScope, backups_folder};
pub use backup::choose_backup::{BackedUp, choose_backup};
pub use backup::choose_restore::{RestoreStart, Restored, choose_restore, choose_restore_start};
pub use collection::choose_sweep::{
    DroppedExtent, Listing, NamedExtents, READERS_GRACE, SweepAction, SweepRefused, SweepView, TOMBSTONE_AGE,
    choose_sweep,
};
pub use document::change::{Change, ChangeError, Changed, apply_changes};
pub use document::codec::{
    DOCUMENT_FORMAT, DOCUMENT_SIZE_BYTES_LARGE, DOCUMENT_SIZE_BYTES_MAX, decode_document, encode_document,
};
pub use document::first_part::{FirstPart, LogProgress, choose_first_part};
pub use document::group::{GROUPED_COUNT_MAX, GROUPED_DROPS_MAX, Grouped, Grouping, group_changes};
pub use document::range_document::{ExtentEntry, KeyLimits, OwnEntry, RangeDocument, StreamEntry, TrimPoint};
pub use document::room::{DOCUMENT_RESERVE_BYTES, DocumentFull, check_document_size, missing_document_bytes};
pub use document::split::{FIRST_EPOCH, HeirNames, Split, SplitRefused, choose_split};
pub use error::StoredError;
pub use extent::append_window::{
    AppendWindow, EXTENT_PARTS_MAX, PushRefused, WINDOW_PARTS_MAX, WINDOW_SIZE_BYTES_MAX, WindowBounds,
    extent_parts_max,
};
pub use extent::bundle::{BundleBounds, split_bundle};
pub use extent::bundle_path::{BundlePath, bundle_folder, bundles_folder};
pub use extent::chain::{Chain, Link};
pub use extent::choose_after_append::{AfterAppend, AppendStop, Found, choose_after_append};
pub use extent::extent_load::ExtentLoad;
pub use extent::part_header::{
    ExtentPlace, PART_BODY_SIZE_MAX, PART_FORMAT, PART_HEADER_SIZE, PartHeader, PartKind, StampLife,
};
pub use extent::part_path::{PartPath, extent_folder, extents_folder};
pub use extent::put_answer::{PutAnswer, put_answer};
pub use extent::seal_body::{LISTED_PARTS_MAX, parse_seal_body, seal_body};
pub use extent::seal_walk::{SealWalk, WalkStep, WalkStop};
pub use ids::{
    ExtentName, Generation, Incarnation, Mark, Owner, RangeId, StampId, StreamId, UNIQUE_NAME_SIZE,
    UniqueName, next_epoch,
};
pub use metadata::choose_after_transaction::{
    AfterTransaction, DocumentRead, TransactionAnswer, choose_after_transaction,
};
pub use metadata::held_range::{BeginError, ChangeKind, HeldRange, SentChange};
pub use metadata::transaction::{
    Compare, Key, Revision, TRANSACTION_OPERATIONS_MAX, Transaction, TransactionTooLarge, Value, beat,
};
pub use ownership::choose_after_stop::{
    AfterBroken, AfterSealedOut, AfterStop, choose_after_broken, choose_after_sealed_out, choose_after_stop,
};
pub use ownership::choose_take::{Observed, ObservedOwner, Take, TakeChoice, choose_take};
pub use ownership::lease::{BEATS_PER_TTL, Instants, LEASE_MARGIN, LEASE_TTL, Lease};
pub use ownership::release::Release;
pub use ownership::taking::{Taking, TakingStep};
pub use stream::OwnerEpoch;
