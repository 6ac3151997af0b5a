//! Metadata twice: backups of all documents in the object store, and the restore of a lost metadata store.
//!
//! | file | content |
//! |---|---|
//! | `backup_object.rs` | one object: all documents, or those of one change |
//! | `choose_backup.rs` | which objects a restore uses |
//! | `choose_restore.rs` | the documents after a restore: backup and what is newer in the store |
//!
//! What always holds: an object is created once; a restored document lists every extent that was acknowledged
//! into.

pub(crate) mod backup_object;
pub(crate) mod choose_backup;
pub(crate) mod choose_restore;
