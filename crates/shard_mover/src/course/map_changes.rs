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
/// is since when it is so; a thaw does not look at that.
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
