//! Tables of what is known, and what is written in which order.

use super::*;
use shard_map::{
    Change, Changed, Diff, KeyKind, KeyType, MapBuilder, MapChange, Placement, Selection, Shard,
};

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// A catalog and its log.
struct Home {
    catalog: Catalog,
    diffs: Vec<Diff>,
}

impl Home {
    /// Shards `a`, `b` and `c`; maps `m` and `n` with one range each, on `a`.
    fn new() -> Self {
        let map = |text| {
            let mut map = MapBuilder::new(name(text), KeyType::new([KeyKind::Int32]).expect("a type"));
            map.range(&[], None, Placement::on(name("a"))).expect("a range");
            Change::AddMap(map.build().expect("a map"))
        };
        let mut changes =
            ["a", "b", "c"].map(|shard| Change::AddShard(Shard::new(name(shard), shard))).to_vec();
        changes.extend([map("m"), map("n")]);
        let mut home = Home { catalog: Catalog::new(name("catalog"), [7; 16]), diffs: Vec::new() };
        home.make(&changes);
        home
    }

    fn make(&mut self, changes: &[Change]) {
        let Changed { catalog, diff } = self.catalog.apply(changes).expect("changes");
        self.catalog = catalog;
        self.diffs.push(diff);
    }

    fn pin(&mut self, key: i32, shard: &str) {
        self.make(&[Change::Map(name("m"), MapChange::Pin { key: vec![key.into()], shard: name(shard) })]);
    }

    fn move_pin(&mut self, key: i32, shard: &str) {
        let mappings = Selection::Pin(vec![key.into()]);
        self.make(&[Change::Map(name("m"), MapChange::Place { mappings, shard: name(shard) })]);
    }

    /// All shards' copies as they should be now.
    fn copies(&self) -> BTreeMap<Name, ShardCopy> {
        let copy = |shard: &Shard| {
            let copy = LocalCopy::of(&self.catalog, shard.name.as_str()).expect("the shard");
            (shard.name.clone(), read(copy))
        };
        self.catalog.shards().map(copy).collect()
    }

    fn writes(&self, copies: &BTreeMap<Name, ShardCopy>, floors: &[(&str, u64)]) -> Writes {
        let floors = floors.iter().map(|(shard, floor)| (name(shard), Epoch(*floor))).collect();
        let losses = Losses::of(&self.diffs, Epoch(0));
        choose_writes(&self.catalog, copies, &floors, &losses).expect("writes")
    }
}

fn read(copy: LocalCopy) -> ShardCopy {
    ShardCopy::Read(Some(StoredCopy { copy, revision: Revision("1".to_owned()) }))
}

fn unreachable() -> ShardCopy {
    ShardCopy::Unreachable("down".to_owned())
}

/// `shard:mapping of m+mapping of m`, for each write.
fn shown(writes: &[CopyWrite]) -> Vec<String> {
    let mappings = |copy: &LocalCopy| {
        let of_m = copy.mappings().filter(|(map, ..)| map.as_str() == "m");
        of_m.map(|(_, _, id, mapping)| format!("{id}@{}", mapping.since)).collect::<Vec<_>>().join("+")
    };
    writes.iter().map(|write| format!("{}:{}", write.shard, mappings(&write.copy))).collect()
}

#[test]
fn first_copies_are_only_opened() {
    let home = Home::new();
    let none = ["a", "b", "c"].map(|shard| (name(shard), ShardCopy::Read(None))).into();
    let writes = home.writes(&none, &[]);
    assert_eq!((shown(&writes.close), writes.held), (vec![], vec![]));
    assert_eq!(shown(&writes.open), ["a:range-@1", "b:", "c:"]);
    assert_eq!(home.writes(&home.copies(), &[]).open, []);
}

#[test]
fn a_loser_is_closed_before_a_gainer_is_opened() {
    let mut home = Home::new();
    home.pin(5, "b");
    let before = home.copies();
    home.move_pin(5, "c");
    let writes = home.writes(&before, &[]);
    assert_eq!(
        (shown(&writes.close), shown(&writes.open)),
        (vec!["b:".to_owned()], vec!["c:pin-80000005@3".to_owned()])
    );
    assert_eq!(writes.close[0].copy.epoch, Epoch(3));
    // A pin over a range takes a key from it: the range is closed, and opened with the pin.
    let before = home.copies();
    home.pin(6, "c");
    let writes = home.writes(&before, &[]);
    // It is the only loser, so one write that comes first does both.
    assert_eq!(shown(&writes.close), [""; 0]);
    assert_eq!(shown(&writes.open), ["a:range-@4", "c:pin-80000005@3+pin-80000006@4"]);
    // Of two losers none is opened before both are closed.
    let before = home.copies();
    home.pin(7, "c");
    home.move_pin(5, "a");
    let writes = home.writes(&before, &[]);
    assert_eq!(shown(&writes.close), ["a:", "c:pin-80000006@4"]);
    assert_eq!(shown(&writes.open), ["a:pin-80000005@6+range-@5", "c:pin-80000006@4+pin-80000007@5"]);
    // The other map's range stays open on the shard all the time.
    assert_eq!(writes.close[0].copy.maps.len(), 1);
}

#[test]
fn a_change_within_one_shard_is_one_write() {
    let mut home = Home::new();
    let before = home.copies();
    home.make(&[Change::Map(name("m"), MapChange::Split { at: vec![9.into()] })]);
    let writes = home.writes(&before, &[]);
    assert_eq!(
        (shown(&writes.close), shown(&writes.open)),
        (vec![], vec!["a:range-@2+range-80000009@2".to_owned()])
    );
    // It comes before those that get keys from it.
    let before = home.copies();
    home.pin(1, "a");
    home.pin(2, "b");
    let open = shown(&home.writes(&before, &[]).open);
    assert!(open[0].starts_with("a:") || !home.writes(&before, &[]).close.is_empty(), "{open:?}");
}

/// A publisher that is late may be about to open there what the shard lost meanwhile.
#[test]
fn a_loser_that_never_had_it_in_its_copy_is_written_for_the_newest_epoch() {
    let mut home = Home::new();
    let before = home.copies();
    home.pin(5, "b");
    home.move_pin(5, "c");
    let writes = home.writes(&before, &[]);
    assert_eq!(shown(&writes.close), ["a:", "b:"]);
    assert!(writes.close.iter().all(|write| write.copy.epoch == Epoch(3)));
    assert_eq!(shown(&writes.open), ["a:range-@2", "c:pin-80000005@3"]);
}

#[test]
fn gainers_wait_for_losers_that_can_not_be_reached() {
    let mut home = Home::new();
    home.pin(5, "b");
    let mut before = home.copies();
    home.move_pin(5, "c");
    before.insert(name("b"), unreachable());
    let held = Held { shard: name("c"), map: name("m"), waits_for: vec![name("b")] };
    let writes = home.writes(&before, &[]);
    assert_eq!(
        (shown(&writes.close), shown(&writes.open), writes.held),
        (vec![], vec![], vec![held.clone()])
    );
    // It is known to be closed, or not: what was put at epoch 2 was not lost yet.
    assert_eq!(home.writes(&before, &[("b", 3)]).held, []);
    assert_eq!(shown(&home.writes(&before, &[("b", 3)]).open), ["c:pin-80000005@3"]);
    assert_eq!(home.writes(&before, &[("b", 2)]).held, [held]);
    // A shard that is out of reach and has lost nothing is in the way of none.
    before.insert(name("b"), home.copies()[&name("b")].clone());
    before.insert(name("c"), unreachable());
    home.pin(7, "b");
    let writes = home.writes(&before, &[("c", 1)]);
    assert_eq!(
        (shown(&writes.open), writes.held),
        (vec!["a:range-@4".to_owned(), "b:pin-80000007@4".to_owned()], vec![])
    );
}

/// What shards lost in the epochs of a lost map is in no log.
#[test]
fn after_a_recovery_all_shards_are_closed_first_and_gainers_wait_for_the_others() {
    let mut home = Home::new();
    home.pin(5, "b");
    let mut copies = home.copies();
    let recovered = home.catalog.clone().at_epoch(Epoch(1000));
    home.diffs.push(Diff::between(&home.catalog, &recovered));
    home.catalog = recovered;
    home.pin(6, "c");
    let writes = home.writes(&copies, &[]);
    assert_eq!(shown(&writes.close), ["a:", "b:pin-80000005@2", "c:"]);
    assert_eq!(shown(&writes.open), ["a:range-@1001", "c:pin-80000006@1001"]);
    copies.insert(name("b"), unreachable());
    let waiting = |shard| Held { shard: name(shard), map: name("m"), waits_for: vec![name("b")] };
    assert_eq!(home.writes(&copies, &[("b", 2)]).held, [waiting("a"), waiting("c")]);
    assert_eq!(home.writes(&copies, &[("b", 1000)]).held, []);
}

#[test]
fn copies_of_others_and_later_copies_are_refused_with_both() {
    let home = Home::new();
    let refused = |change: &dyn Fn(&mut LocalCopy)| {
        let mut copies = home.copies();
        let mut copy = LocalCopy::of(&home.catalog, "b").expect("the shard");
        change(&mut copy);
        copies.insert(name("b"), read(copy));
        let losses = Losses::of(&home.diffs, Epoch(0));
        choose_writes(&home.catalog, &copies, &BTreeMap::new(), &losses).expect_err("refused").to_string()
    };
    let other = refused(&|copy| {
        copy.catalog_id = [8; 16];
        copy.catalog = name("billing");
        copy.shard.name = name("x");
    });
    assert!(
        other.contains("shard `b` of catalog `catalog` is at b, and there is shard `x` of catalog `billing`"),
        "{other}"
    );
    let other = refused(&|copy| copy.shard.name = name("c"));
    assert!(
        other.contains("shard `b` is at b, and there is shard `c` of the same catalog `catalog`"),
        "{other}"
    );
    let later = refused(&|copy| copy.epoch = Epoch(9));
    assert!(
        later.contains("catalog `catalog` is at epoch 1, and shard `b` has a copy of epoch 9; recover"),
        "{later}"
    );
}
