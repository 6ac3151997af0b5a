//! Whether a change of a map leaves rows behind: it moves none.
//!
//! What always holds: a key whose rows are on a shard is not routed to another one, where a read would find
//! nothing, unless who changes the map says that there are no rows; and no key leaves a mapping that is not
//! online, because a move may be copying it.

use crate::run::OperationError;
use shard_map::{Catalog, Change, KeyValue, MapChange, ShardMap, State, VirtualShards};

/// Refuses changes after which a key that was pinned, unpinned or put into a range is on another shard.
pub(crate) fn check_keys_stay(
    catalog: &Catalog,
    changes: &[Change],
    has_no_data: bool,
) -> Result<(), OperationError> {
    for change in changes {
        let Change::Map(name, change) = change else { continue };
        let Some(map) = catalog.map(name.as_str()) else { continue };
        match change {
            MapChange::Pin { key, shard } => check(map, key, Some(shard.as_str()), has_no_data)?,
            MapChange::Unpin { key } => {
                let alone = Change::Map(name.clone(), change.clone());
                let after = catalog.apply(&[alone])?.catalog;
                let below = after.map(name.as_str()).and_then(|map| map.route(key).ok());
                if let Some(below) = &below
                    && below.placement.state != State::Online
                {
                    return Err(not_online(map, &map.mapping_text(&below.mapping), below.placement.state));
                }
                check(map, key, below.map(|route| route.placement.shard.as_str()), has_no_data)?;
            }
            // Its keys were in virtual shards, any of them, which are on several shards.
            MapChange::AddRange { .. } => {
                let placements = map.virtual_shards().map(VirtualShards::placements).unwrap_or_default();
                let closed = placements.iter().position(|placement| placement.state != State::Online);
                if let Some(number) = closed {
                    return Err(not_online(
                        map,
                        &format!("virtual shard {number}"),
                        placements[number].state,
                    ));
                }
                if !placements.is_empty() && !has_no_data {
                    return Err(OperationError::LeavesRange(name.clone()));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a key may go from where it is to a shard; none: to no mapping.
fn check(
    map: &ShardMap,
    key: &[KeyValue],
    to: Option<&str>,
    has_no_data: bool,
) -> Result<(), OperationError> {
    let Ok(now) = map.route(key) else { return Ok(()) };
    let mapping = map.mapping_text(&now.mapping);
    if now.placement.state != State::Online {
        return Err(not_online(map, &mapping, now.placement.state));
    }
    if to == Some(now.placement.shard.as_str()) || has_no_data {
        return Ok(());
    }
    let (map, shard) = (map.name().clone(), now.placement.shard.clone());
    Err(OperationError::LeavesRows { map, mapping, shard })
}

fn not_online(map: &ShardMap, mapping: &str, state: State) -> OperationError {
    OperationError::NotOnline { map: map.name().clone(), mapping: mapping.to_owned(), state }
}
