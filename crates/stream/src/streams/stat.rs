//! What is known about a stream.

use crate::ids::ExtentId;

/// What is known about a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStat {
    /// Its extents in order, with their lengths in bytes.
    pub extents: Vec<(ExtentId, u64)>,
}
