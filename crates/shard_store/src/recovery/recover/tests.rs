//! Maps out of copies: what is believed, what is missing, what contradicts.

use super::*;
use crate::local::copy::LocalMapping;
use shard_map::{
    Change, Hashed, KeyHash, KeyKind, KeyType, MapBuilder, MapChange, Placement, Selection, State,
};

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// Shards `a` and `b`; map `m` with ranges before and from 10, and a pin; map `h` with four virtual shards.
fn catalog() -> Catalog {
    let key = || KeyType::new([KeyKind::Int32]).expect("a type");
    let mut ranges = MapBuilder::new(name("m"), key());
    ranges.range(&[], Some(&[10.into()]), Placement::on(name("a"))).expect("a range");
    ranges.range(&[10.into()], None, Placement::on(name("b"))).expect("a range");
    ranges.pin(&[3.into()], Placement::on(name("b"))).expect("a pin");
    let mut hash = MapBuilder::new(name("h"), key());
    hash.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 4 }).expect("a hash");
    hash.spread(&[name("a"), name("b")]).expect("room");
    let mut changes: Vec<Change> =
        ["a", "b"].map(|shard| Change::AddShard(Shard::new(name(shard), shard))).into();
    changes.extend([ranges, hash].map(|map| Change::AddMap(map.build().expect("a map"))));
    Catalog::new(name("catalog"), [7; 16]).apply(&changes).expect("a catalog").catalog
}

fn copies(catalog: &Catalog) -> BTreeMap<Name, LocalCopy> {
    let copy = |shard: &Shard| Some((shard.name.clone(), LocalCopy::of(catalog, shard.name.as_str())?));
    catalog.shards().filter_map(copy).collect()
}

fn all(copies: &BTreeMap<Name, LocalCopy>) -> BTreeSet<Name> {
    copies.keys().cloned().collect()
}

fn placed(catalog: &Catalog, map: &str, key: i32) -> (String, u64) {
    let route = catalog.map(map).expect("it").route(&[key.into()]).expect("a route");
    (route.placement.shard.to_string(), route.placement.since.0)
}

#[test]
fn a_lost_map_is_what_the_copies_say() {
    let lost = catalog();
    let copies = copies(&lost);
    let (recovered, recovery) = recover(None, &copies, &all(&copies)).expect("a map");
    let nothing = Recovery { is_map_lost: true, ..Recovery::default() };
    assert_eq!((recovered.epoch().0, recovery), (1 + LOST_EPOCHS_MAX, nothing));
    for (map, key) in [("m", 1), ("m", 3), ("m", 10), ("h", 1), ("h", 2), ("h", 3)] {
        assert_eq!(placed(&recovered, map, key).0, placed(&lost, map, key).0, "{map}, {key}");
    }
    assert!(recovered.shards().eq(lost.shards()));
    // Of a pin its copy knows all; the range below may have been about to lose a key to a pin that no copy
    // has.
    assert_eq!((placed(&recovered, "m", 3).1, placed(&recovered, "m", 1).1), (1, recovered.epoch().0));
}

#[test]
fn a_lost_map_without_a_copy_of_each_shard_is_refused_with_what_is_missing() {
    let lost = catalog();
    let mut copies = copies(&lost);
    copies.remove(&name("b"));
    let error = recover(None, &copies, &all(&copies)).expect_err("half a map").to_string();
    assert!(
        error.contains("map `h`: virtual shard 2 of 4 is on no shard; place it; is a shard's copy missing?"),
        "{error}"
    );
    assert_eq!(recover(None, &BTreeMap::new(), &BTreeSet::new()), Err(RecoverError::Nothing));
}

#[test]
fn an_old_map_is_brought_up_by_the_copies() {
    let old = catalog();
    let place = MapChange::Place { mappings: Selection::Range(vec![]), shard: name("b") };
    let newer = old.apply(&[Change::Map(name("m"), place)]).expect("a move").catalog;
    let copies = copies(&newer);
    let (recovered, _) = recover(Some(&old), &copies, &all(&copies)).expect("a map");
    assert_eq!(placed(&recovered, "m", 1), ("b".to_owned(), 2 + LOST_EPOCHS_MAX));
    assert_eq!(recovered.epoch().0, 2 + LOST_EPOCHS_MAX);
    // The map is believed: what the shards have is put right by the next publish, so all gets a new epoch.
    let (kept, recovery) = recover(Some(&old), &copies, &BTreeSet::new()).expect("a map");
    assert_eq!(placed(&kept, "m", 1), ("a".to_owned(), kept.epoch().0));
    assert_eq!(recovery.from_map.len(), 7);
}

/// A publish was cut off between closing and opening, and what is left looks like a map of pins.
#[test]
fn a_map_whose_ranges_no_copy_has_is_refused() {
    let old = catalog();
    let mut copies = copies(&old);
    for copy in copies.values_mut() {
        for map in copy.maps.values_mut() {
            map.mappings.retain(|id, _| !matches!(id, MappingId::Range(_)));
        }
    }
    let error = recover(None, &copies, &all(&copies)).expect_err("no ranges").to_string();
    assert_eq!(error, "map `m`: its ranges are on no shard; is a shard's copy missing?");
    let (recovered, _) = recover(Some(&old), &copies, &all(&copies)).expect("a map");
    assert_eq!(placed(&recovered, "m", 1), ("a".to_owned(), recovered.epoch().0));
}

/// A publish was cut off between closing and opening: no copy has the mapping.
#[test]
fn what_no_copy_has_is_where_the_old_map_has_it_at_a_new_epoch() {
    let old = catalog();
    let mut copies = copies(&old);
    copies.get_mut(&name("a")).expect("it").maps.remove(&name("m"));
    let (recovered, recovery) = recover(Some(&old), &copies, &all(&copies)).expect("a map");
    assert_eq!(placed(&recovered, "m", 1), ("a".to_owned(), recovered.epoch().0));
    assert_eq!(recovery.from_map, [(name("m"), "range-".to_owned(), name("a"))]);
    // It is behind no copy and may be a backup all the same: clients may know epoch 2 of the lost map.
    assert_eq!(recovered.epoch().0, 1 + LOST_EPOCHS_MAX);
    let error = recover(None, &copies, &all(&copies)).expect_err("half a map").to_string();
    assert!(
        error.contains("nothing holds the keys [first, 10) between the first key and [10, last] on `b`"),
        "{error}"
    );
}

/// After the backup the pin was unpinned, so clients know the range as where its key is.
#[test]
fn below_a_pin_of_an_old_map_nothing_keeps_its_epoch() {
    let old = catalog();
    let unpin = Change::Map(name("m"), MapChange::Unpin { key: vec![3.into()] });
    let newer = old.apply(&[unpin]).expect("no pin").catalog;
    let copies = copies(&newer);
    let (recovered, recovery) = recover(Some(&old), &copies, &all(&copies)).expect("a map");
    assert_eq!(recovery.from_map, [(name("m"), "pin-80000003".to_owned(), name("b"))]);
    assert_eq!(placed(&recovered, "m", 3), ("b".to_owned(), recovered.epoch().0));
    assert_eq!(placed(&recovered, "m", 1), ("a".to_owned(), recovered.epoch().0));
}

#[test]
fn of_two_claims_the_newer_one_is_right() {
    let old = catalog();
    let mut copies = copies(&old);
    let claim = |since| LocalMapping { high: None, state: State::Online, since: Epoch(since) };
    let pin = MappingId::parse("pin-80000003", old.map("m").expect("it").key_type()).expect("a pin");
    let mut add = |since| {
        let map = copies.get_mut(&name("a")).expect("it").maps.get_mut(&name("m")).expect("it");
        map.mappings.insert(pin.clone(), claim(since));
        recover(None, &copies, &all(&copies))
    };
    let (recovered, recovery) = add(5).expect("a map");
    assert_eq!(placed(&recovered, "m", 3), ("a".to_owned(), 5));
    assert_eq!(recovery.superseded, [(name("m"), "pin-80000003".to_owned(), name("b"), name("a"))]);
    let error = add(1).expect_err("a contradiction").to_string();
    assert!(
        error.contains(
            "map `m`: shard `a` (since epoch 1) and shard `b` (since epoch 1) both have keys of pin-80000003"
        ),
        "{error}"
    );
}

#[test]
fn ranges_that_overlap_in_part_are_a_contradiction() {
    let old = catalog();
    let mut copies = copies(&old);
    let range = copies.get_mut(&name("b")).expect("it").maps.get_mut(&name("m")).expect("it");
    let key = range.key.clone();
    range.mappings.retain(|id, _| matches!(id, MappingId::Pin(_)));
    let low = MappingId::Range(key.bound(&[5.into()]).expect("a bound"));
    range.mappings.insert(low, LocalMapping { high: None, state: State::Online, since: Epoch(9) });
    let error = recover(None, &copies, &all(&copies)).expect_err("a contradiction").to_string();
    assert!(
        error.contains("shard `b` (since epoch 9) and shard `a` (since epoch 1) both have keys of range-"),
        "{error}"
    );
    let believed = BTreeSet::from([name("b")]);
    let error = recover(None, &copies, &believed).expect_err("a gap").to_string();
    assert!(
        error.contains("nothing holds the keys [first, 5)") || error.contains("virtual shard 0"),
        "{error}"
    );
}

#[test]
fn two_catalogs_and_two_forms_are_refused_with_both() {
    let old = catalog();
    let mut copies = copies(&old);
    copies.get_mut(&name("b")).expect("it").maps.get_mut(&name("h")).expect("it").hash = None;
    let error = recover(None, &copies, &all(&copies)).expect_err("two forms").to_string();
    assert!(
        error.contains("map `h`: shard `a` and shard `b` differ in the key's type or the hash"),
        "{error}"
    );
    let other = copies.get_mut(&name("b")).expect("it");
    (other.catalog, other.catalog_id) = (name("billing"), [8; 16]);
    let error = recover(None, &copies, &all(&copies)).expect_err("two catalogs").to_string();
    assert!(
        error.contains("shard `b` belongs to catalog `billing`, and `a` to `catalog`; recover each by"),
        "{error}"
    );
    let error = recover(Some(&old), &copies, &BTreeSet::new()).expect_err("two catalogs").to_string();
    assert!(error.contains("and `the map` to `catalog`"), "{error}");
}

#[test]
fn a_detached_shard_is_taken_in_again() {
    let mut pins = MapBuilder::new(name("p"), KeyType::new([KeyKind::Int32]).expect("a type"));
    pins.pin(&[1.into()], Placement::on(name("a"))).expect("a pin");
    pins.pin(&[2.into()], Placement::on(name("b"))).expect("a pin");
    let shards = ["a", "b"].map(|shard| Change::AddShard(Shard::new(name(shard), shard)));
    let changes = [shards.as_slice(), &[Change::AddMap(pins.build().expect("a map"))]].concat();
    let whole = Catalog::new(name("catalog"), [7; 16]).apply(&changes).expect("a catalog").catalog;
    let copy = copies(&whole).remove(&name("b")).expect("it");
    let detached = crate::recovery::detach::detach(&whole, &name("b")).expect("changes");
    let without = whole.apply(&detached).expect("detached").catalog;
    assert_eq!((without.shards().len(), without.map("p").expect("it").pins().len()), (1, 1));
    let copies = BTreeMap::from([(name("b"), copy)]);
    let (again, _) = recover(Some(&without), &copies, &all(&copies)).expect("a map");
    assert_eq!(placed(&again, "p", 2), ("b".to_owned(), 1));
    // Keys of ranges and hashes would be left without a mapping.
    let error = crate::recovery::detach::detach(&catalog(), &name("b")).expect_err("in use").to_string();
    assert!(
        error
            .contains("shard `b` can't be removed: 2 mappings are on it, such as virtual shard 2 of map `h`"),
        "{error}"
    );
}

/// A recovery thawed all mappings: a move that had one was not known to the map any more, and others could
/// change its keys under it.
#[test]
fn what_was_frozen_is_frozen_if_it_has_the_same_keys() {
    let by = |text: &str| text.to_owned();
    let freeze =
        |map: &str, mappings, of: &str| Change::Map(name(map), MapChange::Freeze { mappings, by: by(of) });
    let old = catalog();
    let frozen = old.apply(&[
        freeze("m", Selection::Range(vec![]), "move 1"),
        freeze("m", Selection::Pin(vec![3.into()]), "move 2"),
        freeze("h", Selection::Virtual(1, 1), "repair 3"),
    ]);
    let old = frozen.expect("frozen").catalog;
    let copies_of_old = copies(&old);
    let (recovered, recovery) = recover(Some(&old), &copies_of_old, &all(&copies_of_old)).expect("a map");
    for map in ["h", "m"] {
        let of = |catalog: &Catalog| {
            let frozen = catalog.map(map).expect("it").frozen();
            frozen.map(|(mapping, there)| (mapping.clone(), there.clone())).collect::<Vec<_>>()
        };
        assert_eq!(of(&recovered), of(&old), "{map}");
    }
    let three = [
        (name("h"), by("virtual-1"), by("repair 3")),
        (name("m"), by("pin-80000003"), by("move 2")),
        (name("m"), by("range-"), by("move 1")),
    ];
    assert_eq!((recovery.frozen, recovery.thawed), (three.to_vec(), Vec::new()));
    // After the backup the moves ended, the pin was unpinned, which gave its key to the range.
    let thaw = |mappings, of: &str| Change::Map(name("m"), MapChange::Thaw { mappings, by: by(of) });
    let newer = old.apply(&[
        thaw(Selection::Range(vec![]), "move 1"),
        thaw(Selection::Pin(vec![3.into()]), "move 2"),
        Change::Map(name("m"), MapChange::Place { mappings: Selection::Range(vec![]), shard: name("b") }),
        Change::Map(name("m"), MapChange::Pin { key: vec![4.into()], shard: name("b") }),
    ]);
    let copies = copies(&newer.expect("changed").catalog);
    let (recovered, recovery) = recover(Some(&old), &copies, &all(&copies)).expect("a map");
    assert_eq!(recovery.thawed, [(name("m"), by("range-"), by("move 1"))]);
    let left = recovered.map("m").expect("it").frozen().count();
    assert_eq!((left, recovery.frozen.len()), (1, 2));
    // Without the map nothing says what was.
    let (_, recovery) = recover(None, &copies, &all(&copies)).expect("a map");
    assert!(recovery.is_map_lost && recovery.frozen.is_empty());
}
