//! Copies: of whole blobs, and of parts of a blob into blocks, appends and pages.
//!
//! What always holds: the source is a blob of this server, and the bytes come from it, never from the
//! request's body.

mod copy_blob;
mod copy_request;
mod put_blob_from_url;
mod put_part_from_url;
mod source;
mod upload_source;

pub(crate) use copy_blob::{abort_copy, copy_blob};
pub(crate) use put_blob_from_url::put_blob_from_url;
pub(crate) use put_part_from_url::{append_block_from_url, put_block_from_url, put_pages_from_url};
