//! Bloom filters: the one stored with a checkpoint, in lines of a cache line each, and those in memory over the keys of several
//! checkpoints.

pub(crate) mod block_filter;
pub(crate) mod key_filter;
pub(crate) mod key_groups;
