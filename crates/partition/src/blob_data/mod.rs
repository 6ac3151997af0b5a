//! Blob data: pieces that rows name, the extents that hold them, which of these are emptied, and the threads
//! that append.

pub(crate) mod choose_emptied;
pub(crate) mod data_ends;
pub(crate) mod data_writer;
mod owner_shares;
pub(crate) mod piece;
mod round_robin;
