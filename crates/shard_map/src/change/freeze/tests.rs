//! Which changes a frozen mapping refuses. Rows of a mapping that a move copies or deletes were lost when its
//! keys went to another mapping meanwhile.

use super::*;
use crate::catalog::map::Hashed;
use crate::catalog::map_builder::MapBuilder;
use crate::catalog::placement::{Placement, State};
use crate::catalog::shard::Shard;
use crate::change::apply::{Change, MapChange, Selection};
use crate::key::hash::KeyHash;
use crate::key::key_type::KeyType;
use crate::key::kind::KeyKind;
use crate::key::value::KeyValue;
use crate::name::Name;

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn key(of: i32) -> Vec<KeyValue> {
    vec![of.into()]
}

/// Pins of 3 and 50, ranges `[0, 10)` and `[10, 20)`, over four virtual shards, on two shards.
fn catalog() -> Catalog {
    let mut map = MapBuilder::new(name("m"), KeyType::new([KeyKind::Int32]).expect("a type"));
    let on = |shard| Placement::on(name(shard));
    map.pin(&key(3), on("b")).expect("a pin").pin(&key(50), on("b")).expect("a pin");
    map.range(&key(0), Some(&key(10)), on("a")).expect("a range");
    map.range(&key(10), Some(&key(20)), on("a")).expect("a range");
    map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 4 }).expect("a hash");
    map.spread(&[name("a")]).expect("room");
    let shards = ["a", "b"].map(|shard| Change::AddShard(Shard::new(name(shard), shard)));
    let changes = [shards.as_slice(), &[Change::AddMap(map.build().expect("a map"))]].concat();
    Catalog::new(name("app"), [7; 16]).apply(&changes).expect("a catalog").catalog
}

fn of_map(change: MapChange) -> Change {
    Change::Map(name("m"), change)
}

fn freeze(mappings: Selection) -> Change {
    of_map(MapChange::Freeze { mappings, by: "move 1".to_owned() })
}

fn thaw(mappings: Selection, by: &str) -> Change {
    of_map(MapChange::Thaw { mappings, by: by.to_owned() })
}

/// The selection of whatever has the key 77.
fn virtual_of_77(catalog: &Catalog) -> u32 {
    match catalog.map("m").expect("it").route(&key(77)).expect("a route").mapping {
        MappingId::Virtual(number) => number,
        other => panic!("{other}"),
    }
}

#[test]
fn a_frozen_mapping_keeps_its_keys_and_its_shard() {
    let start = catalog();
    let number = virtual_of_77(&start);
    let (pin, range) = (Selection::Pin(key(3)), Selection::Range(key(0)));
    let placed = Selection::Virtual(number, number);
    let place = |mappings: &Selection| MapChange::Place { mappings: mappings.clone(), shard: name("b") };
    let to_a = |mappings: &Selection| MapChange::Place { mappings: mappings.clone(), shard: name("a") };
    let close =
        |mappings: &Selection| MapChange::SetState { mappings: mappings.clone(), state: State::ReadOnly };
    // Each change, and whether it is refused while the pin of 3, the range `[0, 10)`, and the virtual shard
    // of 77 are frozen.
    let cases = [
        (MapChange::Pin { key: key(4), shard: name("b") }, [false, true, false]),
        (MapChange::Pin { key: key(14), shard: name("b") }, [false, false, false]),
        (MapChange::Pin { key: key(77), shard: name("a") }, [false, false, true]),
        (MapChange::Unpin { key: key(3) }, [true, true, false]),
        (MapChange::Unpin { key: key(50) }, [false, false, virtual_of(&start, 50) == number]),
        (MapChange::Rekey { from: key(3), to: key(14) }, [true, true, false]),
        (MapChange::Rekey { from: key(3), to: key(77) }, [true, true, true]),
        (MapChange::Split { at: key(5) }, [false, true, false]),
        (MapChange::Split { at: key(15) }, [false, false, false]),
        (MapChange::Merge { at: key(10) }, [false, true, false]),
        (MapChange::AddRange { low: key(30), high: Some(key(40)), shard: name("a") }, [false, false, true]),
        (MapChange::RemoveRange { low: key(0) }, [false, true, true]),
        (MapChange::RemoveRange { low: key(10) }, [false, false, true]),
        (MapChange::Resize { count: 8 }, [false, false, true]),
        (MapChange::Resize { count: 2 }, [false, false, true]),
        (MapChange::Refine { columns: vec![KeyKind::Int32] }, [true, true, true]),
        (to_a(&pin), [true, false, false]),
        (place(&range), [false, true, false]),
        (place(&placed), [false, false, true]),
        (place(&Selection::Virtual(0, 3)), [false, false, true]),
        // What is allowed for keys may change: it changes no key's mapping.
        (close(&pin), [false; 3]),
        (close(&range), [false; 3]),
        (close(&placed), [false; 3]),
    ];
    for (selection, index) in [(&pin, 0), (&range, 1), (&placed, 2)] {
        let frozen = start.apply(&[freeze(selection.clone())]).expect("frozen").catalog;
        for (change, refused) in &cases {
            let change = of_map(change.clone());
            let outcome = frozen.apply(std::slice::from_ref(&change));
            match outcome {
                Err(ChangeError::Frozen { by, .. }) if refused[index] => assert_eq!(by, "move 1"),
                Ok(_) if !refused[index] => {}
                other => panic!("{selection:?} frozen, {change:?}: {other:?}"),
            }
            // Once thawed, and in the same change, all of them can be made.
            let thawed = frozen.apply(&[thaw(selection.clone(), "move 1")]).expect("thawed").catalog;
            thawed.apply(std::slice::from_ref(&change)).expect("made");
            frozen.apply(&[thaw(selection.clone(), "move 1"), change]).expect("made");
        }
        let removed = frozen.apply(&[Change::RemoveMap(name("m"))]);
        assert!(matches!(removed, Err(ChangeError::Frozen { .. })), "{removed:?}");
    }
}

fn virtual_of(catalog: &Catalog, of: i32) -> u32 {
    let map = catalog.map("m").expect("it");
    let encoded = map.key.encode(&key(of)).expect("a key");
    match map.route_below_pins(&encoded).expect("a route").mapping {
        MappingId::Virtual(number) => number,
        other => panic!("{other}"),
    }
}

#[test]
fn who_froze_it_is_named_and_thaws_it() {
    let start = catalog();
    let range = || Selection::Range(key(0));
    let frozen = start.apply(&[freeze(range())]).expect("frozen").catalog;
    let split = frozen.apply(&[of_map(MapChange::Split { at: key(5) })]).expect_err("refused").to_string();
    assert_eq!(
        split,
        "map `m`: the range [0, 10) is frozen by move 1 (online), so its keys don't change and nothing else places \
         it; finish or undo that first"
    );
    for (changes, expected) in [
        (vec![freeze(range())], "frozen by move 1"),
        (vec![thaw(range(), "move 2")], "frozen by move 1"),
        (vec![thaw(Selection::Range(key(10)), "move 1")], "the range [10, 20) is not frozen"),
        (vec![of_map(MapChange::Freeze { mappings: Selection::Range(key(10)), by: String::new() })], "bytes"),
    ] {
        let error = frozen.apply(&changes).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
    // The fence knows nothing of it.
    let mapping = MappingId::Range(frozen.map("m").expect("it").key.bound(&key(0)).expect("a bound"));
    let placement = |catalog: &Catalog| catalog.map("m").expect("it").placement(&mapping).cloned();
    assert_eq!(placement(&frozen), placement(&start));
    let since =
        |catalog: &Catalog| catalog.map("m").expect("it").frozen_by(&mapping).map(|there| there.since);
    assert_eq!(since(&frozen), Some(frozen.epoch()));
    // What froze it places it, and it was frozen all the time.
    let move_on = [
        thaw(range(), "move 1"),
        of_map(MapChange::Place { mappings: range(), shard: name("b") }),
        freeze(range()),
    ];
    let placed = frozen.apply(&move_on).expect("placed").catalog;
    assert_eq!(since(&placed), Some(frozen.epoch()));
    assert_eq!(placement(&placed).map(|there| there.shard), Some(name("b")));
}

#[test]
fn an_undo_thaws_nothing() {
    let start = catalog();
    let range = || Selection::Range(key(0));
    let close = of_map(MapChange::SetState { mappings: range(), state: State::ReadOnly });
    let marked = start.apply(&[close, freeze(range())]).expect("marked");
    let undone = marked.catalog.undo(&marked.diff).expect("undone").catalog;
    assert_eq!(undone.map("m").expect("it").frozen().len(), 1);
    assert!(undone.map("m").expect("it").placements().all(|placement| placement.state == State::Online));
    // The undo of a change of keys is one, too.
    let split = start.apply(&[of_map(MapChange::Split { at: key(5) })]).expect("split");
    let frozen = split.catalog.apply(&[freeze(range())]).expect("frozen").catalog;
    let error = frozen.undo(&split.diff).expect_err("refused").to_string();
    assert!(error.contains("frozen by move 1"), "{error}");
}

#[test]
fn what_is_frozen_is_in_the_document_and_in_differences() {
    let start = catalog();
    let changed =
        start.apply(&[freeze(Selection::Virtual(1, 2)), freeze(Selection::Pin(key(3)))]).expect("frozen");
    assert_eq!(start.patch(&changed.diff).as_ref(), Ok(&changed.catalog));
    let text = changed.catalog.to_json();
    assert_eq!(Catalog::from_json(&text).as_ref(), Ok(&changed.catalog), "{text}");
    for (from, to) in [("virtual-2", "virtual-9"), ("move 1", "")] {
        let error = Catalog::from_json(&text.replace(from, to)).expect_err("refused").to_string();
        assert!(error.contains("is frozen, and is no mapping"), "{error}");
    }
}
