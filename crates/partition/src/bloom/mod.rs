//! Bloom filters: the one that is stored with a part of a checkpoint, and those in memory over a memory table
//! or over several checkpoints.
//!
//! Two kinds remain because a stored filter is built once for a known number of keys and its probes are fixed
//! by the stored layout, while one in memory grows under concurrent readers and needs atomic words.

pub(crate) mod block_filter;
pub(crate) mod key_filter;
pub(crate) mod key_groups;
pub(crate) mod key_set;
