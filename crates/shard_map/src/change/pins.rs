//! Pinning a key to a shard, and taking the pin away.

use super::error::ChangeError;
use crate::catalog::map::ShardMap;
use crate::catalog::placement::Placement;
use crate::key::encoded::EncodedKey;
use crate::key::value::{KeyValue, key_text};
use crate::name::Name;

/// Pins a key that has no pin.
pub(super) fn pin(map: &mut ShardMap, key: &[KeyValue], shard: &Name) -> Result<(), ChangeError> {
    let encoded = encoded(map, key)?;
    if let Some(there) = map.pins.get(&encoded) {
        return Err(pinned(map, key, there));
    }
    map.pins.insert(encoded, Placement::on(shard.clone()));
    Ok(())
}

/// Takes a pin away.
pub(super) fn unpin(map: &mut ShardMap, key: &[KeyValue]) -> Result<(), ChangeError> {
    let encoded = encoded(map, key)?;
    map.pins.remove(&encoded).map(drop).ok_or_else(|| not_pinned(map, key))
}

/// A key of the map.
pub(super) fn encoded(map: &ShardMap, key: &[KeyValue]) -> Result<EncodedKey, ChangeError> {
    map.key.encode(key).map_err(|error| map.key_error(error).into())
}

pub(super) fn pinned(map: &ShardMap, key: &[KeyValue], there: &Placement) -> ChangeError {
    ChangeError::Pinned { map: map.name.clone(), key: key_text(key), shard: there.shard.clone() }
}

pub(super) fn not_pinned(map: &ShardMap, key: &[KeyValue]) -> ChangeError {
    ChangeError::NotPinned { map: map.name.clone(), key: key_text(key) }
}
