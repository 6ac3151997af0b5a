//! What rows are judged by: a map of one epoch, all shards, and what moves have in their hands.

use super::finding::ForeignPlace;
use crate::rows::side::Side;
use shard_backend::{RowKey, TableSchema};
use shard_map::{MappingId, Name, Route, ShardMap};
use std::collections::BTreeSet;

/// Rows between two calls of a sink of progress.
pub(crate) const SHOWN_EVERY_ROWS: u64 = 1000;

/// What rows are judged by.
pub(crate) struct Judged<'a> {
    pub(crate) map: &'a ShardMap,
    /// All rows of each shard.
    pub(crate) sides: Vec<Side>,
    /// Shards whose rows of a mapping a move has in its hands.
    pub(crate) moving: BTreeSet<ForeignPlace>,
}

impl<'a> Judged<'a> {
    /// Where the map has a row's key.
    pub(crate) fn route(&self, table: &TableSchema, key: &RowKey) -> Option<Route<'a>> {
        self.map.route(key.values.get(..table.shard_key().len())?).ok()
    }

    pub(crate) fn is_moving(&self, mapping: &MappingId, shard: &Name) -> bool {
        self.moving.contains(&(shard.clone(), mapping.clone()))
    }

    /// Whether a row is on the shard that the map names.
    pub(crate) fn is_at_home(&self, table: &TableSchema, side: &Side, key: &RowKey) -> bool {
        self.route(table, key).is_some_and(|route| route.placement.shard == side.shard)
    }
}
