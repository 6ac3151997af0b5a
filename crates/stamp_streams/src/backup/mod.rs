//! Metadata twice: backups of documents in the object store, the first start of a stamp, and its restore.
//!
//! | file | content |
//! |---|---|
//! | `back_up.rs` | all documents at one revision, or those of one change, as one object |
//! | `found.rs` | the first start of a stamp |
//! | `probe.rs` | whether an object store can carry one |
//! | `restore.rs` | documents of a lost metadata store, from backups and headers of parts |
//! | `store_mark.rs` | by which a process knows that it has the object store of its stamp |

pub(crate) mod back_up;
pub(crate) mod found;
pub(crate) mod probe;
pub(crate) mod restore;
pub(crate) mod store_mark;
