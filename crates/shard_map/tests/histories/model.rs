//! What a plain reader of a catalog's mappings finds: values compared one by one, no encoded bytes, no
//! search.

use crate::changes::values_of;
use shard_map::{Catalog, Hashed, KeyType, KeyValue, MappingId, Placement, Shard, ShardMap, State};
use std::collections::BTreeMap;

/// A key's mapping as a client knows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyRoute {
    pub(crate) mapping: MappingId,
    pub(crate) placement: Placement,
}

/// All keys that are looked at.
pub(crate) fn keys(map: &ShardMap) -> Vec<Vec<KeyValue>> {
    map.key_type().kinds().iter().fold(vec![Vec::new()], |keys, kind| {
        let longer = |key: Vec<KeyValue>| {
            values_of(*kind).into_iter().map(move |value| [key.as_slice(), &[value]].concat())
        };
        keys.into_iter().flat_map(longer).collect()
    })
}

/// Routes of the keys of all maps, by map and key.
pub(crate) type KeyRoutes = BTreeMap<(String, String), KeyRoute>;

/// The route of each key of each map, after a comparison with what the plain reader finds.
pub(crate) fn routes(catalog: &Catalog, seed: u64) -> KeyRoutes {
    let mut routes = BTreeMap::new();
    for map in catalog.maps() {
        for key in keys(map) {
            let expected = plain_route(map, &key);
            let found = map.route(&key).ok();
            let found = found.map(|route| (route.mapping, route.placement.clone()));
            assert_eq!(found, expected, "seed {seed}: map {}, key {key:?}", map.name());
            let is_total = map.ranges().len() > 0 || map.virtual_shards().is_some();
            assert!(found.is_some() || !is_total, "seed {seed}: map {}, key {key:?}", map.name());
            if let Some((mapping, placement)) = found {
                routes.insert((map.name().to_string(), format!("{key:?}")), KeyRoute { mapping, placement });
            }
        }
    }
    routes
}

/// The one pin, else the one range, else the virtual shard.
fn plain_route(map: &ShardMap, key: &[KeyValue]) -> Option<(MappingId, Placement)> {
    let pins = map.pins().filter(|(pin, _)| map.key_type().decode(pin.as_bytes()).expect("a key") == key);
    let pins: Vec<_> =
        pins.map(|(pin, placement)| (MappingId::Pin(pin.clone()), placement.clone())).collect();
    let ranges = map.ranges().filter(|(low, range)| {
        let bound = |bytes: &[u8]| map.key_type().decode_bound(bytes).expect("a bound");
        let low = bound(low.as_bytes());
        let is_below = |high: &[KeyValue]| key[..high.len()] < *high;
        key[..low.len()] >= low[..]
            && range.high.as_ref().is_none_or(|high| is_below(&bound(high.as_bytes())))
    });
    let ranges = ranges.map(|(low, range)| (MappingId::Range(low.clone()), range.placement.clone()));
    let ranges: Vec<_> = ranges.collect();
    assert!(pins.len() <= 1 && ranges.len() <= 1, "{key:?} is in two mappings of one layer");
    let hashed = map.virtual_shards().map(|layer| {
        let Hashed { hash, columns, count } = layer.hashed();
        let leading = KeyType::new(map.key_type().kinds()[..columns].iter().copied()).expect("a type");
        let bytes = leading.encode(&key[..columns]).expect("a key");
        let number = hash.virtual_shard(bytes.as_bytes(), count);
        (MappingId::Virtual(number), layer.placements()[number as usize].clone())
    });
    pins.into_iter().chain(ranges).chain(hashed).next()
}

/// A catalog without its epochs.
#[derive(Debug, PartialEq)]
pub(crate) struct Content {
    shards: Vec<Shard>,
    maps: BTreeMap<String, (KeyType, Option<Hashed>, Vec<MappingContent>)>,
}

/// Mapping, high bound of a range, shard, state.
type MappingContent = (MappingId, Option<shard_map::Bound>, String, State);

pub(crate) fn content(catalog: &Catalog) -> Content {
    let shards = catalog.shards().map(|shard| Shard { since: shard_map::Epoch(0), ..shard.clone() });
    let maps = catalog.maps().map(|map| {
        let mappings = map.mappings().map(|(mapping, placement)| {
            let high = map.ranges().find(|(low, _)| mapping == MappingId::Range((*low).clone()));
            let high = high.and_then(|(_, range)| range.high.clone());
            (mapping, high, placement.shard.to_string(), placement.state)
        });
        let hashed = map.virtual_shards().map(|layer| layer.hashed());
        (map.name().to_string(), (map.key_type().clone(), hashed, mappings.collect()))
    });
    Content { shards: shards.collect(), maps: maps.collect() }
}
