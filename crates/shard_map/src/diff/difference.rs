//! What differs between two epochs of a catalog.
//!
//! What always holds: the earlier catalog with the difference patched in is the later one, `since` included.

use super::edit::{
    Bytes, FrozenEdit, MapEdit, MapHeader, PinEdit, RangeBody, RangeEdit, ShardEdit, VirtualEdit,
};
use crate::catalog::catalog::Catalog;
use crate::catalog::map::{Range, ShardMap};
use crate::catalog::placement::{Epoch, Placement};
use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The difference of two epochs of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diff {
    /// The earlier epoch.
    pub from: Epoch,
    /// The later one.
    pub to: Epoch,
    /// Shards that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardEdit>,
    /// Maps that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<MapEdit>,
}

impl Diff {
    /// What makes `after` of `before`.
    pub fn between(before: &Catalog, after: &Catalog) -> Self {
        let mut shards = Vec::new();
        both(&before.shards, &after.shards, |name: &Name, old, new| {
            shards.push(ShardEdit { name: name.clone(), old: old.cloned(), new: new.cloned() });
        });
        let mut maps = Vec::new();
        both(&before.maps, &after.maps, |name: &Name, old, new| {
            maps.push(map_edit(name, old.map(Arc::as_ref), new.map(Arc::as_ref)));
        });
        Diff { from: before.epoch, to: after.epoch, shards, maps }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty() && self.maps.is_empty()
    }
}

/// Visits, in order, each key whose values differ.
fn both<K: Ord, V: PartialEq>(
    before: &BTreeMap<K, V>,
    after: &BTreeMap<K, V>,
    mut differs: impl FnMut(&K, Option<&V>, Option<&V>),
) {
    let (mut olds, mut news) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => return,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let old = if order.is_le() { olds.next() } else { None };
        let new = if order.is_ge() { news.next() } else { None };
        let key = old.or(new).map(|(key, _)| key);
        let (old, new) = (old.map(|(_, value)| value), new.map(|(_, value)| value));
        if let Some(key) = key.filter(|_| old != new) {
            differs(key, old, new);
        }
    }
}

fn map_edit(name: &Name, old: Option<&ShardMap>, new: Option<&ShardMap>) -> MapEdit {
    let (no_pins, no_ranges) = (BTreeMap::new(), BTreeMap::new());
    let mut pins = Vec::new();
    both(old.map_or(&no_pins, |map| &map.pins), new.map_or(&no_pins, |map| &map.pins), |key, old, new| {
        let key = Bytes(key.as_bytes().to_vec());
        pins.push(PinEdit { key, old: old.cloned(), new: new.cloned() });
    });
    let mut ranges = Vec::new();
    both(
        old.map_or(&no_ranges, |map| &map.ranges),
        new.map_or(&no_ranges, |map| &map.ranges),
        |low, old: Option<&Range>, new: Option<&Range>| {
            let low = Bytes(low.as_bytes().to_vec());
            ranges.push(RangeEdit { low, old: old.map(range_body), new: new.map(range_body) });
        },
    );
    let (nothing, mut frozen) = (BTreeMap::new(), Vec::new());
    both(
        old.map_or(&nothing, |map| &map.frozen),
        new.map_or(&nothing, |map| &map.frozen),
        |mapping, old, new| {
            let mapping = mapping.to_string();
            frozen.push(FrozenEdit { mapping, old: old.cloned(), new: new.cloned() });
        },
    );
    let virtual_shards = virtual_edits(placements(old), placements(new));
    let (old, new) = (old.map(header), new.map(header));
    MapEdit { name: name.clone(), old, new, pins, ranges, virtual_shards, frozen }
}

pub(super) fn header(map: &ShardMap) -> MapHeader {
    let hash = map.virtual_shards.as_ref().map(|layer| layer.hashed);
    MapHeader { key: map.key.clone(), hash, since: map.since }
}

pub(super) fn range_body(range: &Range) -> RangeBody {
    let high = range.high.as_ref().map(|high| Bytes(high.as_bytes().to_vec()));
    RangeBody { high, placement: range.placement.clone() }
}

fn placements(map: Option<&ShardMap>) -> &[Placement] {
    map.and_then(|map| map.virtual_shards.as_ref()).map_or(&[], |layer| &layer.placements)
}

fn virtual_edits(old: &[Placement], new: &[Placement]) -> Vec<VirtualEdit> {
    let mut edits: Vec<VirtualEdit> = Vec::new();
    for (number, at) in (0_u32..).zip(0..old.len().max(new.len())) {
        let (old, new) = (old.get(at), new.get(at));
        if old == new {
            continue;
        }
        match edits.last_mut() {
            Some(edit) if edit.last + 1 == number && edit.old.as_ref() == old && edit.new.as_ref() == new => {
                edit.last = number;
            }
            _ => {
                edits.push(VirtualEdit { first: number, last: number, old: old.cloned(), new: new.cloned() })
            }
        }
    }
    edits
}
