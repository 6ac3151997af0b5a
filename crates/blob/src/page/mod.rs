//! Page blobs: ranges of pages and the operations on them.

pub(crate) mod pages;
pub(crate) mod put_pages;
