//! What is refused, in which words: each message names both sides of what does not fit.

use shard_map::{
    Catalog, Change, Hashed, KeyHash, KeyKind, KeyType, KeyValue, MapBuilder, MapChange, Name, Placement,
    Selection, Shard, State,
};

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// Shards `one` and `two`; maps `tenants` (int64: pins over ranges) and `users` (text: four virtual shards).
fn catalog() -> Catalog {
    let on = |shard: &str| Placement::on(name(shard));
    let mut tenants = MapBuilder::new(name("tenants"), KeyType::new([KeyKind::Int64]).expect("a type"));
    tenants.range(&[], Some(&[100_i64.into()]), on("one")).expect("a range");
    tenants.range(&[100_i64.into()], None, on("two")).expect("a range");
    tenants.pin(&[17_i64.into()], on("two")).expect("a pin");
    let mut users = MapBuilder::new(name("users"), KeyType::new([KeyKind::Text]).expect("a type"));
    users.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 4 }).expect("a hash");
    users.spread(&[name("one"), name("two")]).expect("room");
    let changes = [
        Change::AddShard(Shard::new(name("one"), "db1")),
        Change::AddShard(Shard::new(name("two"), "db2")),
        Change::AddMap(tenants.build().expect("a map")),
        Change::AddMap(users.build().expect("a map")),
    ];
    Catalog::new(name("app"), [7; 16]).apply(&changes).expect("a catalog").catalog
}

/// The document with one part replaced.
fn document(from: &str, to: &str) -> String {
    let text = catalog().to_json();
    assert!(text.contains(from), "{text}");
    text.replace(from, to)
}

#[track_caller]
fn refused(document: &str, message: &str) {
    let error = Catalog::from_json(document).expect_err("refused").to_string();
    assert!(error.contains(message), "{error}");
    assert!(!error.contains('\n'), "one line: {error}");
}

#[test]
fn the_document_is_stable() {
    let expected = r#"{"format":1,"name":"app","id":"07070707-0707-0707-0707-070707070707","epoch":1,"shards":[{"name":"one","location":"db1","since":1},{"name":"two","location":"db2","since":1}],"maps":[{"name":"tenants","key":["int64"],"since":1,"pins":[{"key":"17","shard":"two","since":1}],"ranges":[{"high":"100","shard":"one","since":1},{"low":"100","shard":"two","since":1}]},{"name":"users","key":["text"],"since":1,"hash":{"name":"sha256","version":1,"columns":1,"count":4,"placements":[{"first":0,"last":1,"shard":"one","since":1},{"first":2,"last":3,"shard":"two","since":1}]}}]}"#;
    assert_eq!(catalog().to_json(), expected);
}

#[test]
fn what_people_write_is_read() {
    let text = r#"{"format": 1, "name": "app", "id": "07070707070707070707070707070707", "epoch": 5,
        "shards": [{"name": "one", "location": "db1"}],
        "maps": [{"name": "m", "key": ["int64", "text"], "pins": [{"key": [17, "a"], "shard": "one"}],
                  "ranges": [{"low": [5], "shard": "one", "state": "read-only"}, {"high": ["5"], "shard": "one"}]}]}"#;
    let catalog = Catalog::from_json(text).expect("a catalog");
    let route = catalog.map("m").expect("it").route(&[17_i64.into(), "b".into()]).expect("a route");
    assert_eq!((route.placement.state, route.placement.since.0), (State::ReadOnly, 5));
}

#[test]
fn documents_that_are_none_are_refused() {
    refused("", "the catalog can't be read: EOF");
    refused("[]", "can't be read");
    refused("{}", "this is no catalog of shards: it has no number `format`");
    refused(
        &document("\"format\":1", "\"format\":2"),
        "has format 2, and this version reads formats up to 1; use a",
    );
    // A newer format may have any fields.
    refused(r#"{"format":3,"clouds":[]}"#, "has format 3");
    refused(&document("\"epoch\":1", "\"epoch\":1,\"color\":2"), "unknown field `color`");
    refused(&document("\"high\":\"100\"", "\"hihg\":\"100\""), "unknown field `hihg`");
    refused(&document("\"id\":\"0", "\"id\":\"x"), "is no guid; write 32 hexadecimal digits");
    refused(&document("\"epoch\":1,", "\"epoch\":9007199254740992,"), "the highest is 9007199254740991");
    refused(&document("\"name\":\"two\"", "\"name\":\"one\""), "two shards of the name `one`");
    refused(&document("\"name\":\"users\"", "\"name\":\"tenants\""), "two maps of the name `tenants`");
    refused(
        &document("\"name\":\"two\"", "\"name\":\"t w o\""),
        "`t w o` is no name: a name has 1 to 63 letters",
    );
    refused(
        &document("\"location\":\"db1\"", "\"location\":\"a://u:p@h\""),
        "has a secret (`user:password@`)",
    );
    refused(
        &document("[\"int64\"]", "[\"int46\"]"),
        "`int46` is no kind of key: there are int32, int64, guid",
    );
    refused(&document("[\"int64\"]", "[]"), "a key has 1 to 8 columns, and this one 0");
}

#[test]
fn mappings_that_do_not_fit_are_refused_with_both() {
    refused(
        &document("\"low\":\"100\"", "\"low\":\"99\""),
        "map `tenants`: the ranges [first, 100) on `one` and [99, last] on `two` overlap; let one end where",
    );
    refused(
        &document("\"low\":\"100\"", "\"low\":\"101\""),
        "map `tenants`: nothing holds the keys [100, 101) between [first, 100) on `one` and [101, last] on `two`; add",
    );
    refused(
        &document("\"high\":\"100\"", "\"low\":\"5\",\"high\":\"100\""),
        "the keys [first, 5) between the first key and",
    );
    refused(
        &document("\"low\":\"100\"", "\"low\":\"100\",\"high\":\"200\""),
        "[200, last] between [100, 200) on `two` and",
    );
    refused(
        &document("\"high\":\"100\",", ""),
        "the ranges [first, last] on `one` and [100, last] on `two` overlap",
    );
    refused(
        &document("\"low\":\"100\",", ""),
        "the ranges [first, 100) on `one` and [first, last] on `two` overlap",
    );
    refused(
        &document("\"low\":\"100\"", "\"low\":\"100\",\"high\":\"100\""),
        "the range [100, 100) has no keys",
    );
    refused(
        &document("\"low\":\"100\"", "\"low\":\"x\""),
        "map `tenants`, a range on `two`: `x` is no int64: write",
    );
    refused(
        &document("\"key\":\"17\"", "\"key\":[17,18]"),
        "a pin to `two`: the key is int64, and 2 values were given",
    );
    refused(&document("\"key\":\"17\"", "\"key\":true"), "map `tenants`, a pin to `two`: `true` is no int64");
    let twice = "\"pins\":[{\"key\":\"17\",\"shard\":\"one\",\"since\":1},";
    refused(
        &document("\"pins\":[", twice),
        "map `tenants` pins the key 17 twice, to `one` and to `two`; keep one",
    );
    let three = "\"pins\":[{\"key\":\"17\",\"shard\":\"three\",\"since\":1}]";
    let document_with_three = document("\"pins\":[{\"key\":\"17\",\"shard\":\"two\",\"since\":1}]", three);
    refused(
        &document_with_three,
        "places the key 17 on shard `three`, which catalog `app` does not have; add it",
    );
    refused(
        &document("\"version\":1,", "\"version\":2,"),
        "no hash `sha256` version 2; this version knows sha256 ver",
    );
    refused(
        &document("\"count\":4", "\"count\":0"),
        "map `users` has 0 virtual shards; there can be 1 to 65536",
    );
    refused(
        &document("\"columns\":1", "\"columns\":2"),
        "map `users` hashes 2 columns of its key, which is text; hash 1",
    );
    refused(&document("\"last\":3", "\"last\":4"), "has 4 virtual shards, and 2 to 4 are not among them");
    refused(&document("\"last\":3", "\"last\":2"), "virtual shard 3 of 4 is on no shard; place it");
    refused(
        &document("\"first\":2", "\"first\":1"),
        "places virtual shard 1 twice, on `one` and on `two`; keep one",
    );
}

#[track_caller]
fn not_made(changes: &[Change], message: &str) {
    let error = catalog().apply(changes).expect_err("refused").to_string();
    assert!(error.contains(message), "{error}");
}

fn tenants(change: MapChange) -> [Change; 1] {
    [Change::Map(name("tenants"), change)]
}

fn users(change: MapChange) -> [Change; 1] {
    [Change::Map(name("users"), change)]
}

#[test]
fn changes_of_shards_and_maps_that_do_not_fit_are_refused() {
    not_made(&[Change::AddShard(Shard::new(name("one"), "x"))], "has a shard `one` already, at db1");
    not_made(&[Change::AddShard(Shard::new(name("three"), ""))], "location of shard `three` has 0 bytes");
    not_made(
        &[Change::ChangeShard(Shard::new(name("three"), "x"))],
        "catalog `app` has no shard `three`; add it",
    );
    not_made(&[Change::RemoveShard(name("three"))], "catalog `app` has no shard `three`");
    not_made(
        &[Change::RemoveShard(name("two"))],
        "shard `two` can't be removed: 4 mappings are on it, such as the key 17 of map `tenants`; move them first",
    );
    not_made(&[Change::RemoveMap(name("books"))], "catalog `app` has no map `books`");
    let again = catalog().map("users").expect("it").as_ref().clone();
    not_made(&[Change::AddMap(again)], "catalog `app` has a map `users` already");
    let pin = MapChange::Pin { key: vec![1_i64.into()], shard: name("one") };
    not_made(&[Change::Map(name("books"), pin)], "catalog `app` has no map `books`");
}

#[test]
fn changes_of_mappings_that_do_not_fit_are_refused() {
    let int = |value: i64| vec![KeyValue::from(value)];
    let shard = || name("one");
    not_made(
        &tenants(MapChange::Pin { key: int(17), shard: shard() }),
        "pins the key 17 already, to shard `two`; place",
    );
    not_made(
        &tenants(MapChange::Pin { key: vec![1_i32.into()], shard: shard() }),
        "key is int64, and the value 1 is int32",
    );
    not_made(
        &tenants(MapChange::Pin { key: int(1), shard: name("no") }),
        "places the key 1 on shard `no`, which",
    );
    not_made(&tenants(MapChange::Unpin { key: int(18) }), "map `tenants` does not pin the key 18");
    not_made(&tenants(MapChange::Rekey { from: int(18), to: int(19) }), "does not pin the key 18");
    not_made(&tenants(MapChange::Rekey { from: int(17), to: int(17) }), "pins the key 17 already");
    not_made(
        &tenants(MapChange::Split { at: int(100) }),
        "the range [100, last] on `two` begins at 100, so there is",
    );
    not_made(
        &tenants(MapChange::Merge { at: int(100) }),
        "[first, 100) on `one` and [100, last] on `two` can't become one",
    );
    not_made(
        &tenants(MapChange::Merge { at: int(5) }),
        "no range that begins at 5; [first, 100) on `one` holds it",
    );
    not_made(&tenants(MapChange::Merge { at: vec![] }), "because none is before the first");
    not_made(
        &tenants(MapChange::RemoveRange { low: int(100) }),
        "nothing holds the keys [100, last] between",
    );
    let overlap = MapChange::AddRange { low: int(50), high: Some(int(60)), shard: shard() };
    not_made(&tenants(overlap), "the ranges [first, 100) on `one` and [50, 60) on `one` overlap");
    let place = |mappings| MapChange::Place { mappings, shard: shard() };
    not_made(&tenants(place(Selection::Range(int(5)))), "no range that begins at 5");
    not_made(
        &tenants(place(Selection::Virtual(0, 1))),
        "map `tenants` has no hash, and so no virtual shards",
    );
    not_made(&users(place(Selection::Virtual(3, 4))), "has 4 virtual shards, and 3 to 4 are not among them");
    not_made(&users(place(Selection::Virtual(2, 1))), "2 to 1 are not among them");
    not_made(
        &users(MapChange::Resize { count: 6 }),
        "has 4 virtual shards, and can't have 6: one number must be a",
    );
    not_made(&users(MapChange::Resize { count: 0 }), "has 0 virtual shards; there can be 1 to 65536");
    not_made(
        &users(MapChange::Resize { count: 1 }),
        "virtual shards 0 on `one` (online) and 2 on `two` (online) can't",
    );
    not_made(&tenants(MapChange::Resize { count: 1 }), "has no hash");
    not_made(
        &users(MapChange::Refine { columns: vec![KeyKind::Int32; 8] }),
        "a key has 1 to 8 columns, and this one 9",
    );
}

#[test]
fn of_several_changes_all_are_made_or_none() {
    let before = catalog();
    let add = Change::AddShard(Shard::new(name("three"), "db3"));
    let pin = |key: i64| {
        Change::Map(name("tenants"), MapChange::Pin { key: vec![key.into()], shard: name("three") })
    };
    let after = before.apply(&[add.clone(), pin(1), pin(2)]).expect("all").catalog;
    assert_eq!((after.epoch().0, after.map("tenants").expect("it").pins().len()), (2, 3));
    assert!(before.apply(&[add, pin(1), pin(17)]).is_err());
    assert_eq!(before, catalog());
}

#[test]
fn an_undo_of_what_was_changed_since_is_refused() {
    let before = catalog();
    let pin = MapChange::Pin { key: vec![1_i64.into()], shard: name("one") };
    let pinned = before.apply(&tenants(pin)).expect("a pin");
    let selection = Selection::Pin(vec![1_i64.into()]);
    let place = MapChange::Place { mappings: selection, shard: name("two") };
    let placed = pinned.catalog.apply(&tenants(place)).expect("a move");
    let error = placed.catalog.undo(&pinned.diff).expect_err("changed since").to_string();
    assert!(
        error.contains("the change to epoch 2 can't be undone, because something changed since: map `ten"),
        "{error}"
    );
    // A change of the range below, which the pin gave a new epoch, is no obstacle, and stays.
    let state = MapChange::SetState { mappings: Selection::Range(vec![]), state: State::ReadOnly };
    let read_only = pinned.catalog.apply(&tenants(state)).expect("a state");
    let undone = read_only.catalog.undo(&pinned.diff).expect("undone").catalog;
    let route = undone.map("tenants").expect("it").route(&[1_i64.into()]).expect("a route");
    assert_eq!((route.placement.state, route.placement.since.0), (State::ReadOnly, 4));
    // Without the shard that it was on it can't be there again.
    let moved =
        before.apply(&users(MapChange::Place { mappings: Selection::Virtual(2, 3), shard: name("one") }));
    let moved = moved.expect("a move");
    let gone = moved.catalog.apply(&[
        tenants(MapChange::Unpin { key: vec![17_i64.into()] })[0].clone(),
        tenants(MapChange::Place { mappings: Selection::Range(vec![100_i64.into()]), shard: name("one") })[0]
            .clone(),
        Change::RemoveShard(name("two")),
    ]);
    let error = gone.expect("gone").catalog.undo(&moved.diff).expect_err("no shard").to_string();
    assert!(
        error.contains("epoch 2 can't be undone: map `users` places virtual shard 2 on shard `two`, which"),
        "{error}"
    );
}

#[test]
fn a_patch_of_another_epoch_or_catalog_is_refused() {
    let before = catalog();
    let changed = before.apply(&tenants(MapChange::Unpin { key: vec![17_i64.into()] })).expect("unpinned");
    let error = changed.catalog.patch(&changed.diff).expect_err("made already").to_string();
    assert!(error.contains("catalog `app` is at epoch 2, and the change is from epoch 1 to 2"), "{error}");
    let without = Catalog::new(name("app"), [7; 16]).at_epoch(before.epoch());
    let error = without.patch(&changed.diff).expect_err("no map").to_string();
    assert!(error.contains("map `tenants`: the map is not there, and the change says of int64"), "{error}");
    let mut diff = changed.diff.clone();
    diff.maps[0].pins[0].old = None;
    let error = before.patch(&diff).expect_err("another pin").to_string();
    assert!(
        error.contains("map `tenants`: the pin") && error.contains("and the change says not there"),
        "{error}"
    );
}
