//! All changes of a catalog, and how they are made: all or none, as one epoch.
//!
//! What always holds: what comes out is right as a whole, and everything that became different has the new
//! epoch.

use super::error::ChangeError;
use super::{freeze, maps, merge_ranges, pins, place, ranges, refine, rekey, resize, shards, split_range};
use crate::catalog::catalog::Catalog;
use crate::catalog::map::ShardMap;
use crate::catalog::placement::State;
use crate::catalog::shard::Shard;
use crate::catalog::stamp::stamp_catalog;
use crate::diff::difference::Diff;
use crate::key::kind::KeyKind;
use crate::key::value::KeyValue;
use crate::name::Name;

/// A change of a catalog. Bounds of ranges may have fewer values than the key has columns; without values
/// they are before the first key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds a shard.
    AddShard(Shard),
    /// Replaces what is known of a shard, all but its name.
    ChangeShard(Shard),
    /// Removes a shard, on which no mapping may be.
    RemoveShard(Name),
    /// Adds a map.
    AddMap(ShardMap),
    /// Removes a map with all its mappings.
    RemoveMap(Name),
    /// A change of one map.
    Map(Name, MapChange),
}

/// A change of one map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapChange {
    /// Gives a key a placement of its own, online.
    Pin {
        /// The key.
        key: Vec<KeyValue>,
        /// Where it is from now on.
        shard: Name,
    },
    /// Takes a key's pin away: it belongs to the range or virtual shard below.
    Unpin {
        /// The key.
        key: Vec<KeyValue>,
    },
    /// Adds a range, online, where none is.
    AddRange {
        /// The bound before its keys.
        low: Vec<KeyValue>,
        /// The bound after them; none: it goes to the last key.
        high: Option<Vec<KeyValue>>,
        /// Where they are from now on.
        shard: Name,
    },
    /// Removes a range: its keys belong to the hash below.
    RemoveRange {
        /// Where it begins.
        low: Vec<KeyValue>,
    },
    /// Makes two ranges of one; both stay where it is.
    Split {
        /// Where the second begins.
        at: Vec<KeyValue>,
    },
    /// Makes one range of two neighbours on one shard in one state.
    Merge {
        /// Where the second begins.
        at: Vec<KeyValue>,
    },
    /// Moves mappings to a shard. What they allow stays as it is. Frozen ones are not moved.
    Place {
        /// Which.
        mappings: Selection,
        /// Where they are from now on.
        shard: Name,
    },
    /// Sets what may be done with the keys of mappings.
    SetState {
        /// Which.
        mappings: Selection,
        /// What.
        state: State,
    },
    /// Freezes mappings: until they are thawed each change that would give one other keys, or place it
    /// elsewhere, is refused. Clients do not notice.
    Freeze {
        /// Which; none of them is frozen.
        mappings: Selection,
        /// What freezes them, in words that name it.
        by: String,
    },
    /// Thaws mappings. To thaw what another has frozen is to know that none of its writes can arrive.
    Thaw {
        /// Which.
        mappings: Selection,
        /// What froze them.
        by: String,
    },
    /// The data of a pinned key has another key from now on, and stays where it is.
    Rekey {
        /// The pinned key.
        from: Vec<KeyValue>,
        /// Its new key, which is not pinned.
        to: Vec<KeyValue>,
    },
    /// Adds columns at the end of the key. All keys that begin with a former key stay where that was; pins
    /// become ranges.
    Refine {
        /// The kinds of the new columns.
        columns: Vec<KeyKind>,
    },
    /// Changes the number of virtual shards to a multiple or a part of it. No key moves.
    Resize {
        /// How many.
        count: u32,
    },
}

/// Mappings of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The pin of a key.
    Pin(Vec<KeyValue>),
    /// The range that begins here.
    Range(Vec<KeyValue>),
    /// Virtual shards, from the first to the last.
    Virtual(u32, u32),
}

/// What changes made of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The catalog, an epoch later; if nothing became different the catalog as it was.
    pub catalog: Catalog,
    /// What became different; [`Diff::is_empty`] if nothing did.
    pub diff: Diff,
}

impl Catalog {
    /// Makes all changes, in their order, or none.
    pub fn apply(&self, changes: &[Change]) -> Result<Changed, ChangeError> {
        let mut after = self.clone();
        for change in changes {
            make(change, &mut after)?;
        }
        self.finish(after)
    }

    /// Checks and stamps an edited copy of this catalog.
    pub(crate) fn finish(&self, mut after: Catalog) -> Result<Changed, ChangeError> {
        freeze::check_kept(self, &after)?;
        let epoch = self.epoch.next();
        after.epoch = epoch;
        after.check()?;
        if !stamp_catalog(self, &mut after, epoch) {
            after.epoch = self.epoch;
        }
        let diff = Diff::between(self, &after);
        Ok(Changed { catalog: after, diff })
    }
}

fn make(change: &Change, catalog: &mut Catalog) -> Result<(), ChangeError> {
    match change {
        Change::AddShard(shard) => shards::add(catalog, shard),
        Change::ChangeShard(shard) => shards::change(catalog, shard),
        Change::RemoveShard(name) => shards::remove(catalog, name),
        Change::AddMap(map) => maps::add(catalog, map),
        Change::RemoveMap(name) => maps::remove(catalog, name),
        Change::Map(name, change) => make_of_map(change, maps::to_change(catalog, name)?),
    }
}

fn make_of_map(change: &MapChange, map: &mut ShardMap) -> Result<(), ChangeError> {
    match change {
        MapChange::Pin { key, shard } => pins::pin(map, key, shard),
        MapChange::Unpin { key } => pins::unpin(map, key),
        MapChange::AddRange { low, high, shard } => ranges::add(map, low, high.as_deref(), shard),
        MapChange::RemoveRange { low } => ranges::remove(map, low),
        MapChange::Split { at } => split_range::split(map, at),
        MapChange::Merge { at } => merge_ranges::merge(map, at),
        MapChange::Place { mappings, shard } => {
            let ids = place::ids(map, selected(mappings))?;
            freeze::check_free(map, &ids)?;
            place::for_each(map, selected(mappings), |placement| placement.shard = shard.clone())
        }
        MapChange::SetState { mappings, state } => {
            place::for_each(map, selected(mappings), |placement| placement.state = *state)
        }
        MapChange::Freeze { mappings, by } => freeze::freeze(map, selected(mappings), by),
        MapChange::Thaw { mappings, by } => freeze::thaw(map, selected(mappings), by),
        MapChange::Rekey { from, to } => rekey::rekey(map, from, to),
        MapChange::Refine { columns } => refine::refine(map, columns),
        MapChange::Resize { count } => resize::resize(map, *count),
    }
}

fn selected(selection: &Selection) -> place::Selected<'_> {
    match selection {
        Selection::Pin(key) => place::Selected::Pin(key),
        Selection::Range(low) => place::Selected::Range(low),
        Selection::Virtual(first, last) => place::Selected::Virtual(*first, *last),
    }
}
