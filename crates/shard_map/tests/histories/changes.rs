//! The catalog that histories begin with, and the changes that they try. Many changes are refused; what is
//! refused changes nothing.

use shard_map::{
    Bound, Catalog, Change, Frozen, Hashed, KeyHash, KeyKind, KeyType, KeyValue, MapBuilder, MapChange,
    MappingId, Name, Placement, Range, Selection, Shard, ShardMap, State,
};

/// All changes by name.
pub(crate) const CHANGES: [&str; 18] = [
    "add shard",
    "change shard",
    "remove shard",
    "add map",
    "remove map",
    "pin",
    "unpin",
    "add range",
    "remove range",
    "split",
    "merge",
    "place",
    "set state",
    "rekey",
    "refine",
    "resize",
    "freeze",
    "thaw",
];

/// The maps, by their layers.
const MAPS: [&str; 5] = ["pins", "ranges", "hash", "both", "all"];

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn on(shard: &str) -> Placement {
    Placement::on(name(shard))
}

/// Pins alone, ranges alone, hash alone, ranges over a hash, all three, with keys of several kinds.
pub(crate) fn catalog() -> Catalog {
    let mut changes: Vec<Change> = ["s0", "s1", "s2"]
        .map(|shard| Change::AddShard(Shard::new(name(shard), format!("at:{shard}"))))
        .into();
    changes.extend(MAPS.map(|map| Change::AddMap(self::map(map))));
    Catalog::new(name("catalog"), [7; 16]).apply(&changes).expect("a catalog").catalog
}

fn map(form: &str) -> ShardMap {
    let kinds = match form {
        "pins" | "ranges" | "both" => vec![KeyKind::Int32],
        "hash" => vec![KeyKind::Text],
        _ => vec![KeyKind::Text, KeyKind::Int32],
    };
    let mut map = MapBuilder::new(name(form), KeyType::new(kinds).expect("a type"));
    let ranges: [(&[KeyValue], Option<&[KeyValue]>); 2] = match form {
        "ranges" => [(&[], Some(&[KeyValue::Int32(4)])), (&[KeyValue::Int32(4)], None)],
        "both" => [
            (&[KeyValue::Int32(0)], Some(&[KeyValue::Int32(4)])),
            (&[KeyValue::Int32(6)], Some(&[KeyValue::Int32(8)])),
        ],
        _ => [(&[], None), (&[], None)],
    };
    if matches!(form, "ranges" | "both") {
        for ((low, high), shard) in ranges.into_iter().zip(["s0", "s1"]) {
            map.range(low, high, on(shard)).expect("a range");
        }
    }
    if matches!(form, "hash" | "both" | "all") {
        let columns = 1;
        map.hash(Hashed { hash: KeyHash::Sha256V1, columns, count: 6 }).expect("a hash");
        map.spread(&[name("s0"), name("s1"), name("s2")]).expect("room");
    }
    match form {
        "pins" => map.pin(&[3.into()], on("s0")).expect("a pin"),
        "all" => map.pin(&["a".into(), 3.into()], on("s1")).expect("a pin"),
        _ => &mut map,
    };
    map.build().expect("a map")
}

/// A value of a kind, of few.
pub(crate) fn values_of(kind: KeyKind) -> Vec<KeyValue> {
    match kind {
        KeyKind::Int32 => [i32::MIN, -1, 0, 3, 4, 5, 7, i32::MAX].map(KeyValue::from).into(),
        KeyKind::Text => ["", "\0", "a", "a\0", "ab", "b"].map(KeyValue::from).into(),
        kind => panic!("no map has {kind}"),
    }
}

/// Some change, by its name.
pub(crate) fn change(catalog: &Catalog, below: &mut dyn FnMut(usize) -> usize) -> (&'static str, Change) {
    let kind = CHANGES[below(CHANGES.len())];
    let shard = name(["s0", "s1", "s2", "s3"][below(4)]);
    let spare = name(["s3", "s4", "s5"][below(3)]);
    let change = match kind {
        "add shard" => Change::AddShard(Shard::new(spare, "at:new")),
        "change shard" => {
            let mut shard = Shard::new(shard, format!("at:{}", below(3)));
            shard.is_draining = below(2) == 0;
            shard.tags.insert(name("region"), "eu".to_owned());
            Change::ChangeShard(shard)
        }
        "remove shard" => Change::RemoveShard(spare),
        "add map" => {
            let missing = MAPS.into_iter().find(|map| catalog.map(map).is_none());
            Change::AddMap(self::map(missing.unwrap_or(MAPS[below(MAPS.len())])))
        }
        // Not often, because a map that is gone has no changes.
        "remove map" if below(4) == 0 => Change::RemoveMap(some_map(catalog, below)),
        kind => {
            let name = some_map(catalog, below);
            let Some(map) = catalog.map(name.as_str()) else {
                return ("remove map", Change::RemoveMap(name));
            };
            let (kind, change) = map_change(kind, map, shard, below);
            return (kind, Change::Map(name, change));
        }
    };
    (kind, change)
}

fn some_map(catalog: &Catalog, below: &mut dyn FnMut(usize) -> usize) -> Name {
    let count = catalog.maps().len();
    match count {
        0 => name("pins"),
        count => catalog.maps().nth(below(count)).expect("one of them").name().clone(),
    }
}

fn map_change(
    kind: &'static str,
    map: &ShardMap,
    shard: Name,
    below: &mut dyn FnMut(usize) -> usize,
) -> (&'static str, MapChange) {
    let kinds = map.key_type().kinds().to_vec();
    let change = match kind {
        "pin" => MapChange::Pin { key: some_values(&kinds, below), shard },
        "unpin" => MapChange::Unpin { key: some_pin(map, below) },
        "add range" => {
            let (low, high) = (some_bound(&kinds, below), some_bound(&kinds, below));
            MapChange::AddRange { low, high: Some(high).filter(|_| below(4) != 0), shard }
        }
        "remove range" => MapChange::RemoveRange { low: some_low(map, below) },
        "merge" => MapChange::Merge { at: some_second(map, below) },
        "place" => MapChange::Place { mappings: selection(map, below), shard },
        "set state" => {
            let state = [State::Online, State::ReadOnly, State::Offline][below(3)];
            MapChange::SetState { mappings: selection(map, below), state }
        }
        "rekey" => MapChange::Rekey { from: some_pin(map, below), to: some_values(&kinds, below) },
        "refine" if kinds.len() < 3 && below(4) == 0 => {
            MapChange::Refine { columns: vec![[KeyKind::Int32, KeyKind::Text][below(2)]] }
        }
        "resize" => MapChange::Resize { count: [2, 3, 6, 12, 24][below(5)] },
        "freeze" => MapChange::Freeze { mappings: selection(map, below), by: format!("move {}", below(3)) },
        "thaw" => match map.frozen().nth(below(map.frozen().len().max(1))) {
            Some((mapping, frozen)) => {
                MapChange::Thaw { mappings: selection_of(map, mapping), by: frozen.by.clone() }
            }
            None => MapChange::Thaw { mappings: selection(map, below), by: "move 0".to_owned() },
        },
        _ => return ("split", MapChange::Split { at: some_bound(&kinds, below) }),
    };
    (kind, change)
}

/// The selection of a mapping.
fn selection_of(map: &ShardMap, mapping: &MappingId) -> Selection {
    match mapping {
        MappingId::Pin(key) => Selection::Pin(map.key_type().decode(key.as_bytes()).expect("a key")),
        MappingId::Range(low) => {
            Selection::Range(map.key_type().decode_bound(low.as_bytes()).expect("a bound"))
        }
        MappingId::Virtual(number) => Selection::Virtual(*number, *number),
    }
}

/// The changes that thaw all that is frozen.
pub(crate) fn thaw_all(catalog: &Catalog) -> Vec<Change> {
    let of = |map: &ShardMap| {
        let thaw = |(mapping, frozen): (&MappingId, &Frozen)| {
            let (mappings, by) = (selection_of(map, mapping), frozen.by.clone());
            Change::Map(map.name().clone(), MapChange::Thaw { mappings, by })
        };
        map.frozen().map(thaw).collect::<Vec<_>>()
    };
    catalog.maps().flat_map(|map| of(map)).collect()
}

fn some_values(kinds: &[KeyKind], below: &mut dyn FnMut(usize) -> usize) -> Vec<KeyValue> {
    let mut some = |kind: &KeyKind| {
        let values = values_of(*kind);
        values[below(values.len())].clone()
    };
    kinds.iter().map(&mut some).collect()
}

fn some_bound(kinds: &[KeyKind], below: &mut dyn FnMut(usize) -> usize) -> Vec<KeyValue> {
    let mut values = some_values(kinds, below);
    values.truncate(below(kinds.len() + 1));
    values
}

fn some_pin(map: &ShardMap, below: &mut dyn FnMut(usize) -> usize) -> Vec<KeyValue> {
    match map.pins().len() {
        0 => some_values(map.key_type().kinds(), below),
        count => {
            let (key, _) = map.pins().nth(below(count)).expect("one of them");
            map.key_type().decode(key.as_bytes()).expect("a key")
        }
    }
}

fn some_low(map: &ShardMap, below: &mut dyn FnMut(usize) -> usize) -> Vec<KeyValue> {
    match map.ranges().len() {
        0 => Vec::new(),
        count => {
            let (low, _) = map.ranges().nth(below(count)).expect("one of them");
            map.key_type().decode_bound(low.as_bytes()).expect("a bound")
        }
    }
}

/// Where a range begins that is in the same place as the one before it, if there is any.
fn some_second(map: &ShardMap, below: &mut dyn FnMut(usize) -> usize) -> Vec<KeyValue> {
    let ranges: Vec<_> = map.ranges().collect();
    let same = |pair: &&[(&Bound, &Range)]| pair[0].1.placement.is_same_place(&pair[1].1.placement);
    let pairs: Vec<_> = ranges.windows(2).filter(same).collect();
    match pairs.len() {
        0 => some_low(map, below),
        count => map.key_type().decode_bound(pairs[below(count)][1].0.as_bytes()).expect("a bound"),
    }
}

fn selection(map: &ShardMap, below: &mut dyn FnMut(usize) -> usize) -> Selection {
    let count = map.virtual_shards().map_or(1, |layer| layer.hashed().count as usize);
    match below(3) {
        0 => Selection::Pin(some_pin(map, below)),
        1 => Selection::Range(some_low(map, below)),
        _ => {
            let first = below(count);
            Selection::Virtual(first as u32, (first + below(2)) as u32)
        }
    }
}
