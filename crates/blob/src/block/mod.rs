//! Block blobs: blocks that are staged, and lists of blocks that are committed.

pub(crate) mod block_list;
pub(crate) mod put_block;
pub(crate) mod put_block_list;
