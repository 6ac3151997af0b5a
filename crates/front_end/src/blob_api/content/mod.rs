//! Blobs' bytes over HTTP: read, uploaded, and framed with checksums on the way.
//!
//! What always holds: they are streamed in constant memory, and bytes that fail their check are never
//! visible.

pub(crate) mod blob_read;
pub(crate) mod structured;
pub(crate) mod uploads;
