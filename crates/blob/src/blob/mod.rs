//! Operations on a whole blob: put, read, set, delete, and the write that all puts share.

pub(crate) mod delete_blob;
pub(crate) mod put_blob;
pub(crate) mod read_blob;
pub(crate) mod set_blob;
pub(crate) mod write_blob;
