//! The metadata of a range: one document, changed by whole transactions.
//!
//! | file | content |
//! |---|---|
//! | `range_document.rs` | the document: own entry, keys, streams, extents |
//! | `codec.rs` | its bytes |
//! | `change.rs` | one change of it, and what the change drops |
//! | `group.rs` | changes of several callers as one transaction |
//! | `room.rs` | what may still be added to it |
//! | `first_part.rs` | when the first part of an extent may be sent |
//! | `split.rs` | a range becomes two, by pointer |
//!
//! What always holds: an extent is in a document before its first part is sent; it enters a document new, or
//! copied from another; it leaves one only sealed.

pub(crate) mod change;
pub(crate) mod codec;
pub(crate) mod first_part;
pub(crate) mod group;
pub(crate) mod range_document;
pub(crate) mod room;
pub(crate) mod split;
