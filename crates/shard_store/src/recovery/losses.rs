//! Which shards a log of changes took keys from, and when.
//!
//! What always holds: if a key's mapping was on a shard before a change, and not on it in the same way after
//! it, the change is a loss of that shard in that map. What was lost in epochs that no log has is unknown:
//! those that were pruned, and those that a recovery jumps over.

use shard_map::{Diff, Epoch, Name};
use std::collections::BTreeMap;

/// The last loss of each shard in each map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    last: BTreeMap<(Name, Name), Epoch>,
    /// All changes after this epoch are known, and none before it.
    known_after: Epoch,
}

impl Losses {
    /// Of changes in a row, which are all that the log has after `known_after`.
    pub(crate) fn of<'a>(diffs: impl IntoIterator<Item = &'a Diff>, known_after: Epoch) -> Self {
        let (mut last, mut known_after) = (BTreeMap::new(), known_after);
        for diff in diffs {
            if diff.to > diff.from.next() {
                known_after = known_after.max(diff.to);
            }
            for map in &diff.maps {
                let pins = map.pins.iter().map(|edit| edit.old.as_ref());
                let ranges = map.ranges.iter().map(|edit| edit.old.as_ref().map(|old| &old.placement));
                let placed = map.virtual_shards.iter().map(|edit| edit.old.as_ref());
                for old in pins.chain(ranges).chain(placed).flatten() {
                    last.insert((old.shard.clone(), map.name.clone()), diff.to);
                }
            }
        }
        Losses { last, known_after }
    }

    /// Whether the shard may have lost keys of the map after an epoch.
    pub(crate) fn may_have_lost(&self, shard: &Name, map: &Name, after: Epoch) -> bool {
        let last = self.last.get(&(shard.clone(), map.clone()));
        last.is_some_and(|last| *last > after) || after < self.known_after
    }

    /// The same of any map.
    pub(crate) fn may_have_lost_any(&self, shard: &Name, after: Epoch) -> bool {
        let is_later = |((of, _), last): (&(Name, Name), &Epoch)| of == shard && *last > after;
        self.last.iter().any(is_later) || after < self.known_after
    }
}
