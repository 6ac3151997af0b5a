//! The changes of the map that a move makes.
//!
//! What always holds: a change is decided over the epoch that it follows, so the mapping is as the move left
//! it or nothing is changed; its note names the move.

use super::observe::OwnChange;
use crate::log::state::MoveOrder;
use shard_map::{Catalog, Change, Epoch, KeyType, MapChange, MappingId, Placement, Selection, State};

/// The changes that make of the mapping what the step wants; none if it is not as the step finds it.
pub(crate) fn own_changes(
    catalog: &Catalog,
    order: &MoveOrder,
    change: OwnChange,
    known: Epoch,
) -> Vec<Change> {
    let Some((map, mapping)) = super::observe::mapping_of(catalog, order) else { return Vec::new() };
    let Some(map) = catalog.map(map) else { return Vec::new() };
    let (from, to, marked) = (&order.from, &order.to, order.marked_state());
    let (shard, state) = match change {
        OwnChange::Mark => (from, State::Online),
        OwnChange::Place | OwnChange::Reopen => (from, marked),
        OwnChange::Open => (to, marked),
    };
    let expected = Placement { shard: shard.clone(), state, since: known };
    if map.placement(&mapping) != Some(&expected) {
        return Vec::new();
    }
    let Some(selection) = selection(&mapping, map.key_type()) else { return Vec::new() };
    let change = match change {
        OwnChange::Mark => MapChange::SetState { mappings: selection, state: marked },
        OwnChange::Place => MapChange::Place { mappings: selection, shard: to.clone() },
        OwnChange::Open | OwnChange::Reopen => {
            MapChange::SetState { mappings: selection, state: State::Online }
        }
    };
    vec![Change::Map(order.map.clone(), change)]
}

/// The selection of one mapping.
pub(crate) fn selection(mapping: &MappingId, key_type: &KeyType) -> Option<Selection> {
    Some(match mapping {
        MappingId::Pin(key) => Selection::Pin(key_type.decode(key.as_bytes()).ok()?),
        MappingId::Range(low) => Selection::Range(key_type.decode_bound(low.as_bytes()).ok()?),
        MappingId::Virtual(number) => Selection::Virtual(*number, *number),
    })
}
