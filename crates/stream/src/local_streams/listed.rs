//! The extents that streams list, as the extent node compares them with its journal.

use crate::extent_node::ListedExtent;
use crate::ids::ExtentId;
use crate::owner::Owner;
use crate::stream_manager::State;
use std::collections::BTreeMap;

/// The manager's records of extents that streams list.
pub(crate) fn listed_extents(state: &State) -> Vec<ListedExtent> {
    let tails = state.streams.keys().filter_map(|stream| {
        let tail = state.open_tail(stream).ok().flatten()?;
        Some((tail, state.owner(stream).ok()?))
    });
    let owners: BTreeMap<ExtentId, Owner> = tails.collect();
    let listed = state.extents.iter().filter(|(_, info)| info.references > 0);
    let listed = listed.map(|(extent, info)| {
        let owner = owners.get(extent).copied();
        ListedExtent { extent: *extent, sealed: info.sealed, owner }
    });
    listed.collect()
}
