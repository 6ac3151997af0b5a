//! More columns at the end of a map's key: what was one key's data can then be spread.
//!
//! Bounds of ranges keep their values, of which there are then fewer than columns. A pin of a key becomes the
//! range of all keys that begin with it. The hash goes on hashing the columns that it did, so that all that
//! begins with a former key stays together in its virtual shard.

use super::error::ChangeError;
use super::ranges::holding;
use super::split_range::split_at;
use crate::catalog::map::{Range, ShardMap};
use crate::catalog::placement::Placement;
use crate::key::encoded::Bound;
use crate::key::error::KeyError;
use crate::key::key_type::KeyType;
use crate::key::kind::KeyKind;

pub(super) fn refine(map: &mut ShardMap, columns: &[KeyKind]) -> Result<(), ChangeError> {
    let former = map.key.clone();
    let changed = refined(map, &former, columns);
    changed.map_err(|error| map.key_error(error).into())
}

fn refined(map: &mut ShardMap, former: &KeyType, columns: &[KeyKind]) -> Result<(), KeyError> {
    let kinds = former.kinds().iter().chain(columns).copied();
    let key = KeyType::new(kinds)?;
    let bound = |bound: &Bound| key.bound(&former.decode_bound(bound.as_bytes())?);
    let mut ranges = std::collections::BTreeMap::new();
    for (low, range) in &map.ranges {
        let high = range.high.as_ref().map(bound).transpose()?;
        ranges.insert(bound(low)?, Range { high, placement: range.placement.clone() });
    }
    let mut pinned = Vec::new();
    for (pin, placement) in &map.pins {
        let values = former.decode(pin.as_bytes())?;
        pinned.push((key.bound(&values)?, key.bound_after(&values)?, placement.clone()));
    }
    map.key = key;
    map.ranges = ranges;
    map.pins.clear();
    for (low, high, placement) in pinned {
        cut_out(map, low, high, placement);
    }
    Ok(())
}

/// Puts a range over what is there, if anything is.
fn cut_out(map: &mut ShardMap, low: Bound, high: Option<Bound>, placement: Placement) {
    split_at(map, low.clone());
    if let Some(high) = &high
        && holding(map, high).is_some()
    {
        split_at(map, high.clone());
    }
    map.ranges.insert(low, Range { high, placement });
}
