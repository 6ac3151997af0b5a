//! A stopped data folder becomes a stamp, byte for byte, and a stamp that nobody serves a folder.
//!
//! Into a stamp: extents keep their 64 bits and blocks their offsets, because checkpoints name them: an
//! extent's name is the one of this life's incarnation that has those bits
//! ([`stamp::ExtentName::of_short`]). While extents are copied, only streams whose purpose begins with
//! [`MIGRATING`] list them, and no process serves the range; one change of the document then makes the
//! streams, has them list the extents, and removes the others.
//!
//! | file | content |
//! |---|---|
//! | `content.rs` | what a document says of a migration; its last change: pure |
//! | `hold.rs` | founding, joining, taking the range |
//! | `copy_extents.rs` | extents become parts, several at a time |
//! | `compare.rs` | what was copied is read again, and compared |
//! | `into_stamp.rs` | the steps, and going on after a lost lease |
//! | `report.rs` | how far it is |
//! | `abandon.rs` | what was copied is given up |
//! | `into_folder.rs` | the other way |
//!
//! What always holds: before the last change the stamp has no stream that is served, after it all; before it
//! every byte was read back from the object store and compared; what there is to know about an unfinished
//! migration is in the document alone, so that any process may go on.

pub(crate) mod abandon;
mod compare;
pub(crate) mod content;
mod copy_extents;
pub(crate) mod error;
mod hold;
pub(crate) mod into_folder;
pub(crate) mod into_stamp;
pub(crate) mod report;

/// Purposes of streams that list what a migration has copied begin so: a fingerprint of its source follows.
pub const MIGRATING: &str = "migrating/";
