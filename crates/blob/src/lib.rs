//! The Blob service: containers and blobs, their rules, operations as pure decisions, bytes in blob data.
//!
//! Vocabulary: a *container* is a row of the Container object table that gives a name an id; all that is
//! stored of one blob shares a partition name of the Blob object table, so that each operation on it is one
//! decision. The *head* row holds lease, counts and the base blob's *record*; snapshots, long lists of
//! blocks, staged blocks and ranges of pages are rows beside it. Bytes are *pieces* of blob data that rows
//! name, or lie in the row if they are few.
//!
//! What always holds: bytes are durable before a row names them; a blob is replaced whole or not at all; a
//! refusal changes nothing; nothing here knows HTTP, XML or headers.

mod append_block;
mod blob;
mod blob_service;
mod block;
mod condition;
mod container;
mod content;
mod copy_blob;
mod encryption;
mod error;
mod lease;
pub mod limits;
mod listing;
mod name;
mod page;
mod rows;
mod run_change;
mod settings;
mod tags;
mod upkeep;
mod versions;

pub use append_block::Appended;
pub use blob::delete_blob::{DeleteSnapshots, TierConditions};
pub use blob::put_blob::{NewBlob, Written};
pub use blob::read_blob::{BlobReader, FoundRecord};
pub use blob::replacement::ReplaceConditions;
pub use blob::set_blob::{
    BLOCK_TIERS, HIGH_PRIORITY, PAGE_TIERS, STANDARD_PRIORITY, SequenceAction, check_tier,
};
pub use blob::write_blob::{BlockLists, PageLists};
pub use blob_service::{BlobAt, BlobService, VersionedAccounts};
pub use block::put_block_list::BlockSource;
pub use condition::{Conditions, ETags, Present, etag_text};
pub use container::container_row::{ContainerRow, PublicAccess};
pub use content::upload::{Upload, Uploaded};
pub use content::{Block, BlockContent, Chunk, Content};
pub use copy_blob::{Copied, CopySource};
pub use encryption::{ContainerEncryption, Encryption};
pub use error::{BlobError, LeaseError};
pub use lease::{
    LEASE_SECONDS_MAX, LEASE_SECONDS_MIN, Lease, LeaseAction, LeaseOutcome, LeaseState, parse_lease_id,
};
pub use listing::former_names::{FormerName, FormerNames, find_former_names};
pub use listing::{FoundBlob, ListEntry, ListPage, ListQuery};
pub use name::{
    Pairs, check_blob, check_container, check_metadata, check_tags, is_former_blob_name,
    with_forward_slashes, without_trailing_dots,
};
pub use page::put_pages::{PagesWritten, SequenceConditions};
pub use partition::PartitionError;
pub use rows::record::{
    BlobRecord, BlobType, BlobVersion, ContentProperties, CopyState, Deletion, TierState, TypeState,
};
pub use rows::revision::Revision;
pub use rows::row_names::{BlobName, BlobPart, blob_name_of, container_name_of};
pub use settings::{BlobSettings, BlobSettingsUpdate};
pub use tags::tag_filter::TagFilter;
pub use upkeep::remove_lost::RemoveLostBlobs;
