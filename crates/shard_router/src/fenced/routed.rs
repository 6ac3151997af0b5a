//! From keys to the one shard that has them all: pure.
//!
//! What always holds: a routed operation has one shard, and each of its keys is of one of its mappings; keys
//! of two shards are refused before anything is sent.

use super::keys::{Keys, OPERATION_KEYS_MAX};
use crate::map::map_read::{LookupError, MapRead};
use base::Ticks;
use shard_map::{Epoch, KeyValue, MappingId, Name, Shard, ShardMap, State};
use shard_store::{Access, Refusal};
use std::sync::Arc;

/// A mapping that an operation needs, as the client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedMapping {
    /// Which.
    pub mapping: MappingId,
    /// Since when it is as the client knows it.
    pub since: Epoch,
}

/// An operation with its shard.
#[derive(Clone, Debug)]
pub struct Routed {
    read: Arc<MapRead>,
    map: Arc<ShardMap>,
    shard: Shard,
    access: Access,
    mappings: Vec<RoutedMapping>,
}

/// Why an operation has no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoShard {
    /// No route, or no map.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Two keys on two shards.
    #[error(
        "map `{map}`: {first} is on shard `{first_shard}` and {other} on `{other_shard}`; an operation is of one shard"
    )]
    TwoShards { map: Name, first: String, first_shard: Name, other: String, other_shard: Name },
    /// No keys, or too many.
    #[error("an operation has 1 to {OPERATION_KEYS_MAX} keys, and this one {0}")]
    Count(usize),
    /// The map says that it is not allowed now.
    #[error("{0}")]
    State(Refusal),
}

impl NoShard {
    /// Whether a newer map may have another answer.
    pub(crate) fn may_change(&self) -> bool {
        match self {
            NoShard::Lookup(error) => error.may_change(),
            NoShard::TwoShards { .. } | NoShard::State(_) => true,
            NoShard::Count(_) => false,
        }
    }
}

impl Routed {
    /// Finds the shard of all keys.
    pub(crate) fn find(read: &Arc<MapRead>, keys: &Keys<'_>, access: Access) -> Result<Self, NoShard> {
        if !(1..=OPERATION_KEYS_MAX).contains(&keys.keys.len()) {
            return Err(NoShard::Count(keys.keys.len()));
        }
        let map = read.map(keys.map)?;
        let mut found: Option<Routed> = None;
        for key in keys.keys {
            let route = read.route(keys.map, key)?;
            let (shard, state) = read.shard_of(&route)?;
            let text = || map.mapping_text(&route.mapping);
            if !is_allowed(state, access) {
                let (map, mapping) = (map.name().clone(), text());
                return Err(NoShard::State(Refusal::State { map, mapping, state }));
            }
            let mapping = RoutedMapping { mapping: route.mapping.clone(), since: route.placement.since };
            match &mut found {
                None => {
                    let (read, map, shard) = (read.clone(), map.clone(), shard.clone());
                    found = Some(Routed { read, map, shard, access, mappings: vec![mapping] });
                }
                Some(found) if found.shard.name != shard.name => {
                    let first = found.mappings.first().map(|first| map.mapping_text(&first.mapping));
                    return Err(NoShard::TwoShards {
                        map: map.name().clone(),
                        first: first.unwrap_or_default(),
                        first_shard: found.shard.name.clone(),
                        other: text(),
                        other_shard: shard.name.clone(),
                    });
                }
                Some(found) if found.mappings.contains(&mapping) => {}
                Some(found) => found.mappings.push(mapping),
            }
        }
        let mut found = found.ok_or(NoShard::Count(0))?;
        // In one order everywhere, so that no two operations wait for each other's rows of the fence.
        found.mappings.sort_by(|one, other| one.mapping.cmp(&other.mapping));
        Ok(found)
    }

    /// The shard.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The map.
    pub fn map(&self) -> &Arc<ShardMap> {
        &self.map
    }

    /// What the fence of each mapping must have, in the order of their ids; at least one.
    pub fn mappings(&self) -> &[RoutedMapping] {
        &self.mappings
    }

    /// What the operation wants.
    pub fn access(&self) -> Access {
        self.access
    }

    /// When the read of the map began that this is of: what the end of a signature counts from.
    pub fn map_read_at(&self) -> Ticks {
        self.read.read_at
    }

    /// The map that this is of.
    pub fn map_read(&self) -> &Arc<MapRead> {
        &self.read
    }

    /// The mapping of a key, if it is one of the operation's: nothing else may be written with it.
    pub fn mapping_of(&self, key: &[KeyValue]) -> Option<&RoutedMapping> {
        let route = self.map.route(key).ok()?;
        self.mappings.iter().find(|routed| routed.mapping == route.mapping)
    }
}

fn is_allowed(state: State, access: Access) -> bool {
    match access {
        Access::Read => state != State::Offline,
        Access::Write => state == State::Online,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard_map::{Catalog, Change, KeyKind, KeyType, MapBuilder, MapChange, Placement, Selection};
    use std::time::Duration;

    fn read() -> Arc<MapRead> {
        let name = |text: &str| Name::parse(text).expect("a name");
        let key = KeyType::new([KeyKind::Int32]).expect("a type");
        let mut map = MapBuilder::new(name("m"), key);
        map.range(&[], Some(&[10.into()]), Placement::on(name("a"))).expect("a range");
        map.range(&[10.into()], Some(&[20.into()]), Placement::on(name("a"))).expect("a range");
        map.range(&[20.into()], None, Placement::on(name("b"))).expect("a range");
        map.pin(&[5.into()], Placement::on(name("a"))).expect("a pin");
        let offline = |key: i32, state| {
            let selection = Selection::Pin(vec![key.into()]);
            Change::Map(name("m"), MapChange::SetState { mappings: selection, state })
        };
        let changes = [
            Change::AddShard(Shard::new(name("a"), "a")),
            Change::AddShard(Shard::new(name("b"), "b")),
            Change::AddMap(map.build().expect("a map")),
        ];
        let catalog = Catalog::new(name("c"), [1; 16]).apply(&changes).expect("changes").catalog;
        let catalog = catalog.apply(&[offline(5, State::ReadOnly)]).expect("a change").catalog;
        Arc::new(MapRead { catalog, read_at: Ticks(1), read_since: Duration::ZERO })
    }

    #[test]
    fn keys_of_one_shard_are_routed_together_and_no_others() {
        let read = read();
        let find = |keys: &[i32], access| {
            let keys: Vec<Vec<KeyValue>> = keys.iter().map(|key| vec![(*key).into()]).collect();
            let keys: Vec<&[KeyValue]> = keys.iter().map(Vec::as_slice).collect();
            Routed::find(&read, &Keys::new("m", &keys), access)
        };
        let two = find(&[15, 1, 2], Access::Write).expect("one shard");
        assert_eq!((two.shard().name.as_str(), two.mappings().len()), ("a", 2));
        assert!(two.mappings().is_sorted_by_key(|routed| routed.mapping.clone()));
        assert!(two.mapping_of(&[3.into()]).is_some() && two.mapping_of(&[25.into()]).is_none());
        assert!(two.mapping_of(&[5.into()]).is_none(), "a pin in the range is another mapping");
        assert!(matches!(find(&[1, 25], Access::Read), Err(NoShard::TwoShards { .. })));
        assert!(matches!(find(&[], Access::Read), Err(NoShard::Count(0))));
        assert!(matches!(find(&[1; OPERATION_KEYS_MAX + 1], Access::Read), Err(NoShard::Count(65))));
        assert!(matches!(find(&[5], Access::Write), Err(NoShard::State(_))));
        assert!(find(&[5], Access::Read).is_ok());
        let none = Routed::find(&read, &Keys::new("n", &[&[1.into()]]), Access::Read);
        assert!(matches!(none, Err(NoShard::Lookup(LookupError::NoMap { .. }))));
    }
}
