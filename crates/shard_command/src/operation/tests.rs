//! Operations over a home in memory: dry runs, refusals, and the worked example of the book catalogue.

use super::*;
use base::system::{SystemClock, SystemRandom};
use shard_store::{CatalogHome, LocalStores, MemoryLocal, MemoryRecords};
use std::sync::Arc;

/// The book catalogue: an ISBN's last digit, 0 to 9 or X: eleven keys, three shards.
const BOOKS: &str = include_str!("../../../../examples/sharding/books.toml");

fn run_with(shards: LocalStores, is_dry: bool) -> Run {
    let random = Arc::new(SystemRandom::new());
    let records = Arc::new(MemoryRecords::new("memory", random.clone()));
    Run { home: CatalogHome::new(records, Arc::new(SystemClock::new()), random), shards, is_dry }
}

fn books() -> Description {
    Description::parse(BOOKS).expect("a description")
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn pin(map: &str, key: &str, shard: Option<&str>) -> Operation {
    Operation::Pin { map: name(map), key: vec![key.to_owned()], shard: shard.map(name), has_no_data: true }
}

fn add(described: Description) -> Operation {
    Operation::Add { described, has_no_data: true }
}

/// A pin on another shard leaves the key's rows where they are, and readers then found none.
#[tokio::test]
async fn a_key_is_not_routed_away_from_its_rows_unasked() {
    let run = run_with(LocalStores::new(), false);
    Operation::Init(books()).run(&run).await.expect("created");
    let pin = |key: &str, shard: Option<&str>, has_no_data| Operation::Pin {
        map: name("books"),
        key: vec![key.to_owned()],
        shard: shard.map(name),
        has_no_data,
    };
    let left = |outcome: Result<Outcome, OperationError>| match outcome {
        Err(OperationError::LeavesRows { shard, .. }) => Some(shard.to_string()),
        Ok(_) => None,
        Err(error) => panic!("{error}"),
    };
    // 7 is on b.
    assert_eq!(left(pin("7", Some("c"), false).run(&run).await).as_deref(), Some("b"));
    assert_eq!(left(pin("7", Some("b"), false).run(&run).await), None);
    assert_eq!(left(pin("7", None, false).run(&run).await), None);
    assert_eq!(left(pin("7", Some("c"), true).run(&run).await), None);
    assert_eq!(left(pin("7", None, false).run(&run).await).as_deref(), Some("c"));
    assert_eq!(left(pin("7", None, true).run(&run).await), None);
    let described =
        BOOKS.replace("key = \"text\"\n", "key = \"text\"\npins = [{ key = \"7\", shard = \"c\" }]\n");
    let described = Description::parse(&described).expect("a description");
    let added = Operation::Add { described, has_no_data: false }.run(&run).await;
    assert_eq!(left(added).as_deref(), Some("b"));
    // A move may be copying what is not online.
    let known = run.home.load().await.expect("it");
    let mappings = shard_map::Selection::Range(vec!["4".into()]);
    let change = MapChange::SetState { mappings, state: shard_map::State::ReadOnly };
    let read_only = |_: &Catalog| Ok::<_, OperationError>(vec![Change::Map(name("books"), change.clone())]);
    run.home.change(&known, "a move", read_only).await.expect("changed");
    let refused = pin("7", Some("b"), true).run(&run).await;
    assert!(matches!(refused, Err(OperationError::NotOnline { .. })), "{refused:?}");
}

#[tokio::test]
async fn the_book_catalogue_has_eleven_keys_on_three_shards() {
    let run = run_with(LocalStores::new(), false);
    Operation::Init(books()).run(&run).await.expect("created");
    let catalog = run.home.load().await.expect("it");
    let map = catalog.map("books").expect("the map");
    let shard = |key: &str| map.route(&[key.into()]).expect("a route").placement.shard.to_string();
    let found: Vec<String> =
        ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "X"].into_iter().map(shard).collect();
    assert_eq!(found, [["a"; 4].as_slice(), &["b"; 4], &["c"; 3]].concat());
    // A reader of all books is to ask three databases, not eleven.
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>().len(), 3);
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_refuses_what_the_run_would() {
    let mut run = run_with(LocalStores::new(), true);
    let tried = Operation::Init(books()).run(&run).await.expect("tried");
    assert!(tried.text().contains("dry run"), "{}", tried.text());
    assert!(matches!(run.home.load().await, Err(HomeError::NoCatalog { .. })));
    run.is_dry = false;
    Operation::Init(books()).run(&run).await.expect("created");
    run.is_dry = true;
    assert!(matches!(
        Operation::Init(books()).run(&run).await,
        Err(OperationError::Home(HomeError::Exists { .. }))
    ));
    pin("books", "7", Some("c")).run(&run).await.expect("tried");
    assert!(pin("books", "7", Some("x")).run(&run).await.is_err());
    assert!(matches!(pin("bokks", "7", None).run(&run).await, Err(OperationError::NoMap { .. })));
    assert_eq!(run.home.load().await.expect("it").epoch(), Epoch(1));
}

#[tokio::test]
async fn what_is_missing_is_added_and_what_differs_is_refused() {
    let run = run_with(LocalStores::new(), false);
    Operation::Init(books()).run(&run).await.expect("created");
    let again = add(books()).run(&run).await.expect("nothing to do");
    assert!(again.text().starts_with("nothing to change"), "{}", again.text());
    let more = format!("{BOOKS}\n[shards.d]\nlocation = \"sqlite:d.db\"\n");
    let more = more.replace("key = \"text\"\n", "key = \"text\"\npins = [{ key = \"Y\", shard = \"d\" }]\n");
    let more = Description::parse(&more).expect("a description");
    add(more).run(&run).await.expect("added");
    let catalog = run.home.load().await.expect("it");
    assert_eq!((catalog.shards().len(), catalog.map("books").expect("it").pins().len()), (4, 1));
    let other = Description::parse(&BOOKS.replace("sqlite:b.db", "sqlite:other.db")).expect("a description");
    assert!(matches!(add(other).run(&run).await, Err(OperationError::Differs(_))));
    let other = Description::parse(&BOOKS.replace("catalog = \"library\"", "catalog = \"x\"")).expect("it");
    assert!(matches!(add(other).run(&run).await, Err(OperationError::OtherCatalog { .. })));
    let history = Operation::History(Epoch(0), 10).run(&run).await.expect("history");
    assert_eq!(history.json().as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn copies_are_published_compared_and_a_lost_map_recovered() {
    let local = |name: &str| {
        Arc::new(MemoryLocal::new(name, Arc::new(SystemRandom::new()))) as Arc<dyn shard_store::LocalStore>
    };
    let shards: LocalStores = ["a", "b", "c"].into_iter().map(|one| (name(one), local(one))).collect();
    let run = run_with(shards.clone(), false);
    Operation::Init(books()).run(&run).await.expect("created");
    assert!(Operation::Check.run(&run).await.expect("looked at").is_amiss());
    assert!(!Operation::Publish.run(&run).await.expect("published").is_amiss());
    assert!(!Operation::Check.run(&run).await.expect("looked at").is_amiss());
    let lost = run_with(shards, false);
    let recovered = Operation::Recover(None).run(&lost).await.expect("recovered");
    assert!(matches!(recovered, Outcome::Recovered { is_dry: false, .. }));
    let (before, after) = (run.home.load().await.expect("it"), lost.home.load().await.expect("it"));
    assert_eq!((before.id(), before.shards().len()), (after.id(), after.shards().len()));
    assert!(after.epoch() > before.epoch());
}

/// Keys of virtual shards went to a range while a move copied them, with `--no-data` unasked.
#[tokio::test]
async fn a_range_takes_no_keys_from_virtual_shards_that_are_not_online() {
    let run = run_with(LocalStores::new(), false);
    let text = "catalog = \"app\"\n[shards.a]\nlocation = \"at:a\"\n\
                [maps.m]\nkey = \"int32\"\nhash = { count = 4, shards = [\"a\"] }\n";
    let described = Description::parse(text).expect("a description");
    Operation::Init(described).run(&run).await.expect("created");
    let known = run.home.load().await.expect("a catalog");
    let mappings = shard_map::Selection::Virtual(2, 2);
    let closed = MapChange::SetState { mappings, state: shard_map::State::ReadOnly };
    let decide = |_: &_| Ok::<_, HomeError>(vec![Change::Map(name("m"), closed.clone())]);
    run.home.change(&known, "closed", decide).await.expect("closed");
    let with_range = format!("{text}ranges = [{{ low = 3, high = 9, shard = \"a\" }}]\n");
    let added = add(Description::parse(&with_range).expect("a description")).run(&run).await;
    match added {
        Err(OperationError::NotOnline { mapping, .. }) => assert_eq!(mapping, "virtual shard 2"),
        other => panic!("{:?}", other.map(|outcome| outcome.text())),
    }
}
