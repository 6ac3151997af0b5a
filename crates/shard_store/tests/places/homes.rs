//! What a home holds in every place.

use crate::place::{Place, Postgres, Sqlite, clock, random};
use futures_util::future::join_all;
use shard_map::{
    Catalog, Change, Epoch, KeyKind, KeyType, KeyValue, MapBuilder, MapChange, Name, Placement, Selection,
    Shard,
};
use shard_store::{
    CatalogHome, Collected, HomeError, LOST_EPOCHS_MAX, LocalStore, PostgresLocal, PostgresRecords,
    SqliteLocal,
};
use std::sync::Arc;

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// Shards `one` and `two`, and a map of pins over one range on `one`.
pub(crate) fn first_changes() -> Vec<Change> {
    let mut map = MapBuilder::new(name("tenants"), KeyType::new([KeyKind::Int32]).expect("a type"));
    map.range(&[], None, Placement::on(name("one"))).expect("a range");
    vec![
        Change::AddShard(Shard::new(name("one"), "at one")),
        Change::AddShard(Shard::new(name("two"), "at two")),
        Change::AddMap(map.build().expect("a map")),
    ]
}

pub(crate) fn pin(key: i32, shard: &str) -> Change {
    Change::Map(name("tenants"), MapChange::Pin { key: vec![key.into()], shard: name(shard) })
}

pub(crate) fn move_pin(key: i32, shard: &str) -> Change {
    let mappings = Selection::Pin(vec![key.into()]);
    Change::Map(name("tenants"), MapChange::Place { mappings, shard: name(shard) })
}

/// Makes changes whatever the catalog is.
pub(crate) async fn make(
    home: &CatalogHome,
    known: &Catalog,
    changes: Vec<Change>,
) -> Result<Catalog, HomeError> {
    let note = format!("{} changes", changes.len());
    let changed = home.change::<HomeError>(known, &note, |_| Ok(changes.clone())).await?;
    Ok(changed.catalog)
}

pub(crate) async fn a_home_is_created_changed_and_read(place: &dyn Place) {
    let (home, other) = (place.home("home"), place.home("home"));
    let error = home.load().await.expect_err("nothing there").to_string();
    assert!(error.contains("there is no shard map here; create one, or name another place"), "{error}");
    let empty = home.create(&name("app")).await.expect("a catalog");
    let error = other.create(&name("again")).await.expect_err("it is there").to_string();
    assert!(error.contains("catalog `app` is here already"), "{error}");
    assert_eq!(other.load().await.expect("a catalog"), empty);
    let one = make(&home, &empty, first_changes()).await.expect("changes");
    let two =
        make(&other, &empty, vec![pin(7, "two")]).await.expect("changes of another client that is late");
    assert_eq!((one.epoch(), two.epoch()), (Epoch(1), Epoch(2)));
    assert_eq!(home.refresh(&one).await.expect("a catalog"), two);
    assert_eq!(home.load().await.expect("a catalog"), two);
    // Nothing different writes nothing.
    let same = make(&home, &one, vec![move_pin(7, "two")]).await.expect("no change");
    assert_eq!((same.epoch(), other.load().await.expect("it").epoch()), (Epoch(2), Epoch(2)));
    let refused =
        make(&home, &two, vec![Change::RemoveShard(name("two"))]).await.expect_err("it has a mapping");
    assert!(refused.to_string().contains("shard `two` can't be removed: 1 mappings are on it"), "{refused}");
    let history = home.history(Epoch(0), 10).await.expect("history");
    let notes: Vec<_> = history.iter().map(|entry| (entry.diff.to.0, entry.note.as_str())).collect();
    assert_eq!(notes, [(1, "3 changes"), (2, "1 changes")]);
    assert!(history[0].at.starts_with("20") && history[0].at.ends_with('Z'), "{}", history[0].at);
    let undone = home.undo(&two, &history[1].diff, "undo").await.expect("undone").catalog;
    assert_eq!((undone.epoch(), undone.map("tenants").expect("it").pins().len()), (Epoch(3), 0));
    let error = home.undo(&undone, &history[1].diff, "again").await.expect_err("undone already").to_string();
    assert!(
        error.contains("the change to epoch 2 can't be undone, because something changed since"),
        "{error}"
    );
}

/// Each of some clients, all of which know the first epoch only, makes changes of its own.
pub(crate) async fn writers_of_one_home_lose_no_change(place: &dyn Place) {
    const CLIENTS: i32 = 4;
    const CHANGES: i32 = 5;
    let home = place.home("writers");
    let empty = home.create(&name("app")).await.expect("a catalog");
    let first = make(&home, &empty, first_changes()).await.expect("changes");
    let clients = (0..CLIENTS).map(|client| {
        let (home, first) = (place.home("writers"), first.clone());
        async move {
            for index in 0..CHANGES {
                make(&home, &first, vec![pin(client * 100 + index, "two")]).await.expect("a change");
            }
        }
    });
    join_all(clients).await;
    let last = home.load().await.expect("a catalog");
    assert_eq!(last.epoch().0, 1 + (CLIENTS * CHANGES) as u64);
    assert_eq!(last.map("tenants").expect("it").pins().len(), (CLIENTS * CHANGES) as usize);
}

pub(crate) async fn long_changes_snapshots_and_pruning(place: &dyn Place) {
    let home = place.home("long");
    let empty = home.create(&name("app")).await.expect("a catalog");
    let first = make(&home, &empty, first_changes()).await.expect("changes");
    // Far more than a record takes.
    let many = make(&home, &first, (0..2000).map(|key| pin(key, "two")).collect()).await.expect("pins");
    assert_eq!(home.load().await.expect("a catalog"), many);
    let mut last = many.clone();
    for key in 3000..3130 {
        last = make(&home, &last, vec![pin(key, "one")]).await.expect("a pin");
    }
    assert_eq!(home.load().await.expect("from a snapshot"), last);
    assert_eq!(home.refresh(&first).await.expect("from the start"), last);
    let collected = home.prune(Epoch(100)).await.expect("pruned");
    assert_eq!(collected, Collected { entries: 64, orphans: 0 }, "up to the older of two snapshots");
    assert_eq!(home.history(Epoch(0), 1).await.expect("history")[0].diff.from, Epoch(64));
    for known in [&first, &many, &last] {
        assert_eq!(home.refresh(known).await.expect("a catalog"), last);
    }
    assert_eq!(home.load().await.expect("a catalog"), last);
}

/// A client that knows an epoch of a home that was lost finds no change that follows it.
pub(crate) async fn a_home_of_a_recovered_catalog_is_seen_by_old_clients(place: &dyn Place) {
    let lost = place.home("lost");
    let empty = lost.create(&name("app")).await.expect("a catalog");
    let known = make(&lost, &empty, first_changes()).await.expect("changes");
    let home = place.home("recovered");
    let recovered = known.clone().at_epoch(Epoch(LOST_EPOCHS_MAX + 1));
    for _ in 0..2 {
        let created = home.create_from(&recovered, "recovered").await;
        assert_eq!(created.expect("a catalog, as often as it is tried"), recovered);
    }
    let other = recovered.clone().at_epoch(Epoch(LOST_EPOCHS_MAX + 2));
    assert!(matches!(home.create_from(&other, "another").await, Err(HomeError::Exists { .. })));
    assert_eq!(home.refresh(&known).await.expect("a catalog"), recovered);
    let next = make(&home, &known, vec![pin(1, "two")]).await.expect("a change of an old client");
    assert_eq!(next.epoch(), recovered.epoch().next());
    let replaced = next.clone().at_epoch(Epoch(next.epoch().0 + 10));
    home.replace(&next, &replaced, "recovered again").await.expect("replaced");
    let moved = home.replace(&next, &replaced, "late").await.expect_err("it moved");
    assert!(matches!(moved, HomeError::Moved { .. }), "{moved}");
    assert_eq!(home.refresh(&next).await.expect("a catalog"), replaced);
    let route = replaced.map("tenants").expect("it").route(&[KeyValue::from(1)]).expect("a route");
    assert_eq!(route.placement.shard, name("two"));
}

pub(crate) async fn a_database_that_is_not_there_is_named(place: &Postgres) {
    let home =
        CatalogHome::new(Arc::new(PostgresRecords::new(place.database_as_is("nowhere"))), clock(), random());
    let error = home.load().await.expect_err("no database").to_string();
    assert!(error.contains("Postgres database nowhere on 127.0.0.1:"), "{error}");
    assert!(error.contains("database \"nowhere\" does not exist") && !error.contains('\n'), "{error}");
}

/// A mistyped path must not leave an empty database behind.
pub(crate) async fn a_reader_makes_no_sqlite_database(place: &Sqlite) {
    let error = place.home("mistyped").load().await.expect_err("nothing there").to_string();
    assert!(error.contains("there is no shard map here"), "{error}");
    assert_eq!(SqliteLocal::new(place.file("mistyped")).read().await, Ok(None));
    assert!(!place.path("mistyped").exists());
}

/// `CREATE TABLE IF NOT EXISTS` needs the right to create, even if the table is there.
pub(crate) async fn a_reader_in_postgres_needs_no_right_to_write(place: &Postgres) {
    let home = place.home("reading");
    let empty = home.create(&name("app")).await.expect("a catalog");
    let first = make(&home, &empty, first_changes()).await.expect("changes");
    let database = place.database_for_reading("reading");
    let reader = CatalogHome::new(Arc::new(PostgresRecords::new(database.clone())), clock(), random());
    assert_eq!(reader.load().await.expect("a catalog"), first);
    assert_eq!(PostgresLocal::new(database).read().await, Ok(None));
    let error = make(&reader, &first, vec![pin(1, "two")]).await.expect_err("no right").to_string();
    assert!(
        error.contains("permission denied for table larimar_shard_map; grant it, or use another user"),
        "{error}"
    );
}

/// The server is restarted, or ends connections that are idle.
pub(crate) async fn a_connection_that_postgres_ended_is_made_again(place: &Postgres) {
    let home = place.home("ended");
    let empty = home.create(&name("app")).await.expect("a catalog");
    place.end_connections("ended");
    assert_eq!(home.load().await.expect("a catalog"), empty);
}
