//! Operations on the shard of a key, behind its fence.

pub(crate) mod error;
pub(crate) mod keys;
pub(crate) mod routed;
pub(crate) mod router;
pub(crate) mod work;
