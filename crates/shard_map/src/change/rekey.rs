//! A pinned key becomes another: its data stays where it is and is known by the new key.
//!
//! The former key belongs to what is below the pins, if anything is. That the data's rows have the new key is
//! for the one that moves data; the mapping should be offline meanwhile.

use super::error::ChangeError;
use super::pins::{encoded, not_pinned, pinned};
use crate::catalog::map::ShardMap;
use crate::key::value::KeyValue;

pub(super) fn rekey(map: &mut ShardMap, from: &[KeyValue], to: &[KeyValue]) -> Result<(), ChangeError> {
    let (former, new) = (encoded(map, from)?, encoded(map, to)?);
    if let Some(there) = map.pins.get(&new) {
        return Err(pinned(map, to, there));
    }
    let Some(placement) = map.pins.remove(&former) else { return Err(not_pinned(map, from)) };
    map.pins.insert(new, placement);
    Ok(())
}
