//! Block blobs: blocks that are staged, and lists of blocks that are committed.

pub(crate) mod put_block;
pub(crate) mod put_block_list;
