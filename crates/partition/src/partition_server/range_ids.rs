//! Ids of ranges, as the names of their streams have them.
//!
//! Why: at a start they are all that is known before the partition map reads. What always holds: an id is
//! given once for each table.

use crate::operation::ObjectTable;
use std::collections::BTreeSet;
use stream::{StreamName, Streams};

/// The partition map's only range and the first range of each table have this id.
pub(crate) const FIRST_RANGE_ID: u64 = 1;

/// Ids of the ranges of which there are streams.
pub(crate) fn range_ids(streams: &Streams, table: ObjectTable) -> BTreeSet<u64> {
    let folder = format!("{}/", table.name());
    let id = |stream: StreamName| stream.as_str().strip_prefix(&folder)?.split('/').next()?.parse().ok();
    streams.list(&folder).into_iter().filter_map(id).collect()
}
