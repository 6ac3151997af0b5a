//! Tags: the filter language of "find blobs by tags", and the search.

pub(crate) mod find_blobs;
pub(crate) mod tag_filter;
