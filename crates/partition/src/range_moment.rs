//! The state of a range between two durable changes, as a value that is compared.
//!
//! Why: a cache of what was read knows by it that nothing has changed since, without reading again. What
//! always holds: a value that was left never comes back.

use crate::operation::{ObjectTable, RowVersion};

/// The time from one durable change of a range to the next. Two that are equal are the same: the newest
/// change has a version that never comes back, and a range an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeMoment {
    pub(crate) table: ObjectTable,
    pub(crate) range_id: u64,
    pub(crate) visible: RowVersion,
}
