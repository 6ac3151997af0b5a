//! What a shard's copy holds in every place.

use crate::homes::{first_changes, move_pin, name, pin};
use crate::place::{Place, Postgres, Sqlite};
use shard_map::Catalog;
use shard_store::{LocalCopy, LocalStore, PostgresLocal, Replaced, Revision, SqliteLocal};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_postgres::NoTls;

/// Shard `two` at some epochs: without mappings, with pins 1 to 2000, with one of them elsewhere.
fn copies() -> [LocalCopy; 3] {
    let empty = Catalog::new(name("app"), [7; 16]).apply(&first_changes()).expect("a catalog").catalog;
    let pins: Vec<_> = (1..=2000).map(|key| pin(key, "two")).collect();
    let pinned = empty.apply(&pins).expect("pins").catalog;
    let moved = pinned.apply(&[move_pin(5, "one")]).expect("a move").catalog;
    [empty, pinned, moved].map(|catalog| LocalCopy::of(&catalog, "two").expect("the shard"))
}

fn revision(replaced: Replaced) -> Revision {
    match replaced {
        Replaced::Done(Some(revision)) => revision,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_copy_is_replaced_as_a_whole_or_not(place: &dyn Place) {
    let (store, other) = (place.local("copy"), place.local("copy"));
    let [empty, pinned, moved] = copies();
    let replace = |store: &Arc<dyn LocalStore>, expected: Option<&Revision>, copy: Option<&LocalCopy>| {
        let (store, expected, copy) = (store.clone(), expected.cloned(), copy.cloned());
        async move { store.replace(expected.as_ref(), copy.as_ref()).await.expect("an answer") }
    };
    assert_eq!(store.read().await, Ok(None));
    let of_another = revision(replace(&place.local("another-copy"), None, Some(&empty)).await);
    assert_eq!(replace(&store, Some(&of_another), Some(&empty)).await, Replaced::Conflict);
    let first = revision(replace(&store, None, Some(&empty)).await);
    assert_eq!(replace(&other, None, Some(&pinned)).await, Replaced::Conflict);
    let there = other.read().await.expect("an answer").expect("a copy");
    assert_eq!((there.copy, &there.revision), (empty.clone(), &first));
    let second = revision(replace(&other, Some(&first), Some(&pinned)).await);
    assert_eq!(replace(&store, Some(&first), Some(&moved)).await, Replaced::Conflict);
    assert_eq!(store.read().await.expect("an answer").expect("a copy").copy, pinned);
    let third = revision(replace(&store, Some(&second), Some(&moved)).await);
    let there = other.read().await.expect("an answer").expect("a copy");
    assert_eq!((there.copy, &there.revision), (moved, &third));
    assert_eq!(replace(&store, Some(&second), None).await, Replaced::Conflict);
    assert_eq!(replace(&store, Some(&third), None).await, Replaced::Done(None));
    assert_eq!(other.read().await, Ok(None));
    // A revision of before is none of now.
    let again = revision(replace(&store, None, Some(&empty)).await);
    assert_ne!(again, first);
}

pub(crate) async fn fence_rows_in_sqlite_are_those_of_the_copy(place: &Sqlite) {
    let store = SqliteLocal::new(place.file("fence"));
    let [_, pinned, moved] = copies();
    let count = || {
        let connection = rusqlite::Connection::open(place.path("fence")).expect("a database");
        let select = "SELECT count(*), max(since), min(state) FROM larimar_fence";
        connection.query_row(select, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("a row")
    };
    let first = revision(store.replace(None, Some(&pinned)).await.expect("an answer"));
    assert_eq!(count(), (2000_i64, 2_i64, "online".to_owned()));
    revision(store.replace(Some(&first), Some(&moved)).await.expect("an answer"));
    assert_eq!(count(), (1999, 2, "online".to_owned()));
}

/// A writer that passed the fence commits before the shard is closed.
pub(crate) async fn a_replacement_in_postgres_waits_for_writers(place: &Postgres) {
    let store = Arc::new(PostgresLocal::new(place.database("fence")));
    let [_, pinned, moved] = copies();
    let first = revision(store.replace(None, Some(&pinned)).await.expect("an answer"));
    let config = place.config("fence");
    let socket = TcpStream::connect(("127.0.0.1", config.get_ports()[0])).await.expect("a socket");
    let (mut writer, connection) = config.connect_raw(socket, NoTls).await.expect("a connection");
    tokio::spawn(async move { drop(connection.await) });
    let holds = |key: i32| {
        format!(
            "SELECT since FROM larimar_fence WHERE map = 'tenants' AND mapping = 'pin-8000{key:04x}' FOR SHARE"
        )
    };
    let transaction = writer.transaction().await.expect("a transaction");
    assert_eq!(transaction.query(&holds(5), &[]).await.expect("rows").len(), 1);
    let replacement = {
        let store = store.clone();
        tokio::spawn(async move { store.replace(Some(&first), Some(&moved)).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!replacement.is_finished(), "a replacement must wait for the writer that holds the row");
    // A writer of another mapping is not in its way.
    assert_eq!(transaction.query(&holds(6), &[]).await.expect("rows").len(), 1);
    transaction.commit().await.expect("a commit");
    revision(replacement.await.expect("no panic").expect("an answer"));
    assert_eq!(writer.query(&holds(5), &[]).await.expect("rows").len(), 0);
    assert_eq!(writer.query(&holds(6), &[]).await.expect("rows").len(), 1);
}
