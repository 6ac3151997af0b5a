//! Two neighbouring ranges become one.

use super::error::ChangeError;
use super::ranges::{bound, no_range};
use crate::catalog::map::{Range, ShardMap};
use crate::key::encoded::Bound;
use crate::key::value::KeyValue;
use std::ops;

/// Merges the range that begins at `values` into the one that ends there.
pub(super) fn merge(map: &mut ShardMap, values: &[KeyValue]) -> Result<(), ChangeError> {
    let at = bound(map, values)?;
    let Some(second) = map.ranges.get(&at) else { return Err(no_range(map, values, &at)) };
    let below = (ops::Bound::Unbounded, ops::Bound::Excluded(&at));
    let Some((low, first)) = map.ranges.range::<Bound, _>(below).next_back() else {
        return Err(no_merge(map, "no range".to_owned(), (&at, second), "none is before the first"));
    };
    let why = if first.high.as_ref() != Some(&at) {
        "keys lie between them"
    } else if first.placement.shard != second.placement.shard {
        "they are on two shards; place one where the other is"
    } else if first.placement.state != second.placement.state {
        "they are in two states; give both the same"
    } else {
        ""
    };
    if !why.is_empty() {
        return Err(no_merge(map, map.range_on_text(low, first), (&at, second), why));
    }
    let low = low.clone();
    let high = map.ranges.remove(&at).and_then(|second| second.high);
    if let Some(first) = map.ranges.get_mut(&low) {
        first.high = high;
    }
    Ok(())
}

fn no_merge(map: &ShardMap, first: String, (low, second): (&Bound, &Range), why: &str) -> ChangeError {
    let second = map.range_on_text(low, second);
    ChangeError::NoMerge { map: map.name.clone(), first, second, why: why.to_owned() }
}
