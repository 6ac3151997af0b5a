//! The rows of a copy in a SQL shard.
//!
//! ```text
//! larimar_shard   one row: revision, and the copy as JSON
//! larimar_fence   a row a mapping: map, mapping, since, state
//! ```
//!
//! A writer checks the row of its mapping and holds it until its commit. What always holds: the fence's rows
//! are those of the copy, because one transaction writes both.

use super::copy::LocalCopy;
use std::collections::{BTreeMap, BTreeSet};

/// A row's key: map and mapping.
pub(crate) type FenceKey = (String, String);
/// A row's rest: since, and the state's name.
pub(crate) type FenceValue = (i64, String);

/// The fence's rows of a copy.
pub(crate) fn fence_rows(copy: Option<&LocalCopy>) -> BTreeMap<FenceKey, FenceValue> {
    let mappings = copy.into_iter().flat_map(LocalCopy::mappings);
    let rows = mappings.map(|(map, _, id, mapping)| {
        // Epochs are far below the largest number.
        let since = i64::try_from(mapping.since.0).unwrap_or(i64::MAX);
        ((map.to_string(), id.to_string()), (since, mapping.state.to_string()))
    });
    rows.collect()
}

/// What makes one set of rows of another.
pub(crate) struct RowChanges {
    /// Rows that go, and rows that become others: they are removed first, which waits for writers that hold
    /// them.
    pub(crate) removed: Vec<FenceKey>,
    pub(crate) put: Vec<(FenceKey, FenceValue)>,
}

pub(crate) fn row_changes(
    old: &BTreeMap<FenceKey, FenceValue>,
    new: &BTreeMap<FenceKey, FenceValue>,
) -> RowChanges {
    let differs = |key: &&FenceKey| old.get(*key) != new.get(*key);
    let removed: BTreeSet<&FenceKey> = old.keys().filter(differs).collect();
    let put = new.iter().filter(|(key, _)| differs(key));
    RowChanges {
        removed: removed.into_iter().cloned().collect(),
        put: put.map(|(key, value)| (key.clone(), value.clone())).collect(),
    }
}
