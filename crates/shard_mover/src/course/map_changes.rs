//! The changes of the map that a move makes.
//!
//! What always holds: a change is decided over the epoch that it follows, so the mapping is as the move left
//! it or nothing is changed; its note names the move. From the mark until the mapping is open on the target,
//! or until the copy's rows are deleted, it is frozen by the move; so it is while the source's are deleted.

use super::observe::{OwnChange, freezer, mapping_of};
use crate::log::id::MoveId;
use crate::log::state::MoveOrder;
use shard_map::{Catalog, Change, Epoch, KeyType, MapChange, MappingId, Name, Selection, State};

/// The changes that make of the mapping what the step wants; none if it is not as the step finds it. `known`
/// is since when it is so; of a thaw, since when it is frozen: a mover that is behind must not thaw what
/// another one has frozen since, for a later step of the same move.
pub(crate) fn own_changes(
    catalog: &Catalog,
    (id, order): (&MoveId, &MoveOrder),
    change: OwnChange,
    known: Epoch,
) -> Vec<Change> {
    let Some((map, mapping)) = mapping_of(catalog, order) else { return Vec::new() };
    let Some(map) = catalog.map(map) else { return Vec::new() };
    let Some(there) = map.placement(&mapping) else { return Vec::new() };
    let (from, to, marked) = (&order.from, &order.to, order.marked_state());
    let is_found =
        |shard: &Name, state| there.shard == *shard && there.state == state && there.since == known;
    let (is_as_expected, is_frozen) = match change {
        OwnChange::Mark => (is_found(from, State::Online), false),
        OwnChange::Place | OwnChange::Reopen => (is_found(from, marked), true),
        OwnChange::Open => (is_found(to, marked), true),
        OwnChange::Freeze => (is_found(to, State::Online), false),
        OwnChange::Thaw => (true, true),
    };
    let by = freezer(id);
    let is_freeze_right = match map.frozen_by(&mapping) {
        None => !is_frozen,
        Some(there) if change == OwnChange::Thaw && there.since != known => false,
        Some(there) => is_frozen && there.by == by,
    };
    let Some(selection) = selection(&mapping, map.key_type()).filter(|_| is_as_expected && is_freeze_right)
    else {
        return Vec::new();
    };
    let set = |state| MapChange::SetState { mappings: selection.clone(), state };
    let freeze = || MapChange::Freeze { mappings: selection.clone(), by: by.clone() };
    let thaw = || MapChange::Thaw { mappings: selection.clone(), by: by.clone() };
    let place = || MapChange::Place { mappings: selection.clone(), shard: to.clone() };
    let changes = match change {
        OwnChange::Mark => vec![set(marked), freeze()],
        OwnChange::Place => vec![thaw(), place(), freeze()],
        OwnChange::Open => vec![set(State::Online), thaw()],
        OwnChange::Reopen => vec![set(State::Online)],
        OwnChange::Freeze => vec![freeze()],
        OwnChange::Thaw => vec![thaw()],
    };
    changes.into_iter().map(|change| Change::Map(order.map.clone(), change)).collect()
}

/// The selection of one mapping.
pub(crate) fn selection(mapping: &MappingId, key_type: &KeyType) -> Option<Selection> {
    Some(match mapping {
        MappingId::Pin(key) => Selection::Pin(key_type.decode(key.as_bytes()).ok()?),
        MappingId::Range(low) => Selection::Range(key_type.decode_bound(low.as_bytes()).ok()?),
        MappingId::Virtual(number) => Selection::Virtual(*number, *number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;
    use shard_map::{Hashed, KeyHash, KeyKind, MapBuilder, Shard};

    fn name(text: &str) -> Name {
        Name::parse(text).expect("a name")
    }

    /// Virtual shard 0 on `b`, frozen by something since epoch 2, and by a move since epoch 3.
    fn catalog(id: &MoveId) -> [Catalog; 3] {
        let mut map = MapBuilder::new(name("m"), KeyType::new([KeyKind::Int32]).expect("a type"));
        map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 1 }).expect("a hash");
        map.spread(&[name("b")]).expect("room");
        let shards = ["a", "b"].map(|shard| Change::AddShard(Shard::new(name(shard), shard)));
        let changes = [shards.as_slice(), &[Change::AddMap(map.build().expect("a map"))]].concat();
        let free = Catalog::new(name("app"), [7; 16]).apply(&changes).expect("a catalog").catalog;
        let (mappings, other) = (Selection::Virtual(0, 0), "repair 1".to_owned());
        let of_map = |change| Change::Map(name("m"), change);
        let freeze = |by: &str| of_map(MapChange::Freeze { mappings: mappings.clone(), by: by.to_owned() });
        let by_other = free.apply(&[freeze(&other)]).expect("frozen").catalog;
        let thaw = of_map(MapChange::Thaw { mappings: mappings.clone(), by: other });
        let own = by_other.apply(&[thaw, freeze(&freezer(id))]).expect("frozen").catalog;
        [free, by_other, own]
    }

    #[test]
    fn only_what_the_step_has_frozen_is_thawed_and_what_is_free_frozen() {
        let id = MoveId::new(Ticks(1), 1);
        let [free, by_other, own] = catalog(&id);
        let order = MoveOrder {
            map: name("m"),
            mapping: "virtual-0".to_owned(),
            from: name("a"),
            to: name("b"),
            since: Epoch(1),
            catalog_epoch: Epoch(1),
            is_offline: false,
            rows: 0,
            schema: String::new(),
        };
        let has_changes = |catalog: &Catalog, change, known| {
            let changes = own_changes(catalog, (&id, &order), change, Epoch(known));
            catalog.apply(&changes).expect("made");
            !changes.is_empty()
        };
        for (catalog, change, known, expected) in [
            (&free, OwnChange::Freeze, 1, true),
            (&free, OwnChange::Freeze, 2, false),
            (&free, OwnChange::Thaw, 3, false),
            (&by_other, OwnChange::Freeze, 1, false),
            (&by_other, OwnChange::Thaw, 2, false),
            (&own, OwnChange::Freeze, 1, false),
            (&own, OwnChange::Thaw, 3, true),
            // The mark's, long ago.
            (&own, OwnChange::Thaw, 2, false),
        ] {
            assert_eq!(has_changes(catalog, change, known), expected, "{change:?} {known}");
        }
    }
}
