//! Whether entries of the partition map can all hold.
//!
//! Why: ranges that overlap or leave a gap would serve a key twice or never. What always holds: entries that
//! pass give each key of each table exactly one owner.

use crate::error::PartitionError;
use crate::map::partition_map::MapEntry;
use crate::map::routes::Routes;
use crate::operation::OBJECT_TABLES;
use std::collections::BTreeMap;

/// The ranges of each table cover every key once, and no two have the same id.
pub(crate) fn check_cover(entries: &[MapEntry]) -> Result<(), PartitionError> {
    let damage = |what: String| PartitionError::Storage(format!("the partition map is damaged: {what}"));
    let mut routes = Routes::default();
    let mut ids = BTreeMap::new();
    for entry in entries {
        routes.add(entry.table, entry.range.clone(), ());
        if ids.insert((entry.table, entry.id), ()).is_some() {
            return Err(damage(format!("two ranges of table {} have id {}", entry.table.name(), entry.id)));
        }
    }
    OBJECT_TABLES.into_iter().try_for_each(|table| routes.check(table)).map_err(damage)
}
