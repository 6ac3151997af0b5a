//! The extents that streams list, as the extent node compares them with its journal.

use crate::extent_node::ListedExtent;
use crate::stream_manager::State;

/// The manager's records of extents that streams list.
pub(crate) fn listed_extents(state: &State) -> Vec<ListedExtent> {
    let listed = state.extents.iter().filter(|(_, info)| info.references > 0);
    listed.map(|(extent, info)| ListedExtent { extent: *extent, sealed: info.sealed }).collect()
}
