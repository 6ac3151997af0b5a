//! One range becomes two, on the same shard in the same state.

use super::error::ChangeError;
use super::ranges::{bound, holding, no_range};
use crate::catalog::map::{Range, ShardMap, values_text};
use crate::key::encoded::Bound;
use crate::key::value::KeyValue;

/// Splits the range that holds the keys at `values`.
pub(super) fn split(map: &mut ShardMap, values: &[KeyValue]) -> Result<(), ChangeError> {
    let at = bound(map, values)?;
    match holding(map, &at) {
        None => Err(no_range(map, values, &at)),
        Some((low, range)) if *low == at => Err(ChangeError::SplitAtEdge {
            map: map.name.clone(),
            at: values_text(values),
            range: map.range_on_text(low, range),
        }),
        Some(_) => {
            split_at(map, at);
            Ok(())
        }
    }
}

/// Lets a range begin at a bound, if one holds it and none begins there.
pub(super) fn split_at(map: &mut ShardMap, at: Bound) {
    let Some((low, range)) = holding(map, &at) else { return };
    if *low == at {
        return;
    }
    let (low, second) = (low.clone(), Range::clone(range));
    if let Some(first) = map.ranges.get_mut(&low) {
        first.high = Some(at.clone());
    }
    map.ranges.insert(at, second);
}
