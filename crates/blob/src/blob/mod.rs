//! Operations on a whole blob: put, read, set, delete; how a put replaces what is there.

pub(crate) mod delete_blob;
pub(crate) mod put_blob;
pub(crate) mod read_blob;
pub(crate) mod replacement;
pub(crate) mod set_blob;
pub(crate) mod write_blob;
