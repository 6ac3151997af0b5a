//! Adding a range where none is, and removing one; and finding the range that a change names.

use super::error::ChangeError;
use crate::catalog::map::{Range, ShardMap, values_text};
use crate::catalog::map_error::MapError;
use crate::catalog::placement::Placement;
use crate::key::encoded::Bound;
use crate::key::value::KeyValue;
use crate::name::Name;
use std::ops;

/// Adds a range. That it overlaps another, or has no keys, the check of the whole map finds.
pub(super) fn add(
    map: &mut ShardMap,
    low: &[KeyValue],
    high: Option<&[KeyValue]>,
    shard: &Name,
) -> Result<(), ChangeError> {
    let low = bound(map, low)?;
    let high = high.map(|high| bound(map, high)).transpose()?;
    let range = Range { high, placement: Placement::on(shard.clone()) };
    if let Some(there) = map.ranges.get(&low) {
        let (first, second) = (map.range_on_text(&low, there), map.range_on_text(&low, &range));
        return Err(MapError::Overlap { map: map.name.clone(), first, second }.into());
    }
    map.ranges.insert(low, range);
    Ok(())
}

/// Removes a range. That nothing else holds its keys the check of the whole map finds.
pub(super) fn remove(map: &mut ShardMap, low: &[KeyValue]) -> Result<(), ChangeError> {
    let at = bound(map, low)?;
    if map.ranges.remove(&at).is_none() {
        return Err(no_range(map, low, &at));
    }
    Ok(())
}

/// A bound of the map.
pub(super) fn bound(map: &ShardMap, values: &[KeyValue]) -> Result<Bound, ChangeError> {
    map.key.bound(values).map_err(|error| map.key_error(error).into())
}

/// The range that holds the keys at a bound.
pub(super) fn holding<'a>(map: &'a ShardMap, at: &Bound) -> Option<(&'a Bound, &'a Range)> {
    let upto = (ops::Bound::Unbounded, ops::Bound::Included(at.as_bytes()));
    let (low, range) = map.ranges.range::<[u8], _>(upto).next_back()?;
    range.high.as_ref().is_none_or(|high| at < high).then_some((low, range))
}

pub(super) fn no_range(map: &ShardMap, values: &[KeyValue], at: &Bound) -> ChangeError {
    let nearest = holding(map, at)
        .map(|(low, range)| format!("; {} holds it", map.range_on_text(low, range)))
        .unwrap_or_default();
    ChangeError::NoRange { map: map.name.clone(), at: values_text(values), nearest }
}
