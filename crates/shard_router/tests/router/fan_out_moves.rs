//! Answers of all shards while the map changes: none lacks a row, or it is an error.

use crate::model::{ModelConnector, ModelRow, ModelShard};
use crate::setup::{Setup, name, place, set_state};
use base::{BoxFuture, Clock, Environment};
use shard_backend::Capabilities;
use shard_map::{Change, KeyValue, MapChange, Name, Shard, State};
use shard_router::{
    ConnectError, FanOutError, FanOutSettings, MAP_FOR_MAX, Needed, PagedQuery, PartRefusal, Router,
    ShardConnector, ShardCredentials, ShardFailure, ShardPart, ShardQuery,
};
use sim::World;
use std::sync::Arc;
use std::time::Duration;

const ALL: FanOutSettings =
    FanOutSettings { shards_at_once: 128, shard_for_max: Duration::from_secs(30), needed: Needed::AllShards };

fn run<F: Future<Output = ()>>(seed: u64, life: impl FnOnce(Environment) -> F) {
    World::new(seed).run(|env, _| life(env)).expect("no crash");
}

/// Each key from 0 to 11 has a row on the shard that the map has it on.
fn twelve_rows(setup: &Setup) -> ModelConnector {
    let connector = ModelConnector::new(setup);
    for key in 0..12 {
        let shard = ["s0", "s1", "s2"][key as usize / 4];
        connector.shards[&name(shard)].rows.lock().insert((key, key as u64));
    }
    connector
}

/// Moves the range of `s0` to `s1`, and deletes the source's rows.
async fn move_first_range(setup: &Setup, connector: &ModelConnector) {
    let rows = std::mem::take(&mut *connector.shards[&name("s0")].rows.lock());
    connector.shards[&name("s1")].rows.lock().extend(rows);
    setup.change(vec![place(None, "s1")]).await;
    setup.publish().await;
}

fn counted<const N: usize>(counts: [(&str, u64); N]) -> Vec<(Name, u64)> {
    counts.map(|(shard, count)| (name(shard), count)).into()
}

/// All rows in the order of their keys, with their shards.
async fn merged(router: &Router<ModelConnector>, limit: Option<u64>) -> Vec<(String, i32)> {
    let merge = router.merge("m", Arc::new(PageRows), |row: &ModelRow| row.0, limit, ALL).await;
    let (mut merge, mut found) = (merge.expect("a merge"), Vec::new());
    while let Some((shard, (key, _))) = merge.next().await.expect("rows") {
        found.push((shard.to_string(), key));
    }
    found
}

/// Counts and takes so long.
struct SlowCount(Arc<dyn Clock>, Duration);

impl ShardQuery<Arc<ModelShard>> for SlowCount {
    type Output = u64;
    type Error = String;

    fn query<'a>(
        &'a self,
        shard: &'a mut Arc<ModelShard>,
        part: &'a ShardPart,
    ) -> BoxFuture<'a, Result<u64, String>> {
        Box::pin(async move {
            self.0.sleep(self.1).await;
            CountRows.query(shard, part).await
        })
    }
}

/// Model shards that nothing is asked of.
#[derive(Clone)]
struct Unasked(ModelConnector, Capabilities);

impl ShardConnector for Unasked {
    type Connection = Arc<ModelShard>;

    fn capabilities(&self) -> Capabilities {
        self.1
    }

    fn connect<'a>(
        &'a self,
        shard: &'a Shard,
        credentials: &'a ShardCredentials,
    ) -> BoxFuture<'a, Result<Arc<ModelShard>, ConnectError>> {
        self.0.connect(shard, credentials)
    }
}

/// Counts the rows that the map has on the shard.
struct CountRows;

impl ShardQuery<Arc<ModelShard>> for CountRows {
    type Output = u64;
    type Error = String;

    fn query<'a>(
        &'a self,
        shard: &'a mut Arc<ModelShard>,
        part: &'a ShardPart,
    ) -> BoxFuture<'a, Result<u64, String>> {
        Box::pin(async move {
            let rows = shard.rows.lock();
            Ok(rows.iter().filter(|(key, _)| part.holds(&[KeyValue::from(*key)])).count() as u64)
        })
    }
}

/// Pages of two rows.
struct PageRows;

impl PagedQuery<Arc<ModelShard>> for PageRows {
    type Row = ModelRow;
    type Error = String;

    fn page<'a>(
        &'a self,
        shard: &'a mut Arc<ModelShard>,
        part: &'a ShardPart,
        after: Option<&'a ModelRow>,
    ) -> BoxFuture<'a, Result<Vec<ModelRow>, String>> {
        Box::pin(async move {
            let rows = shard.rows.lock();
            let rows = rows.iter().filter(|row| after.is_none_or(|after| *row > after));
            Ok(rows.filter(|(key, _)| part.holds(&[KeyValue::from(*key)])).take(2).copied().collect())
        })
    }
}

#[test]
fn rows_that_a_move_left_behind_are_counted_once() {
    run(1, |env| async move {
        let setup = Setup::start(&env).await;
        let connector = twelve_rows(&setup);
        // A copy that is under way, and one that was left behind.
        connector.shards[&name("s1")].rows.lock().insert((0, 0));
        let router = setup.router(connector.clone());
        let counts = router.fan_out("m", &CountRows, &ALL).await.expect("counts").answers;
        assert_eq!(counts, counted([("s0", 4), ("s1", 4), ("s2", 4)]));
        let backwards = |row: &ModelRow| std::cmp::Reverse(row.0);
        let mut merge =
            router.merge("m", Arc::new(PageRows), backwards, Some(5), ALL).await.expect("a merge");
        assert!(merge.next().await.is_err(), "the pages are in the other order");
        let expected = [("s0", 0), ("s0", 1), ("s0", 2), ("s0", 3), ("s1", 4)];
        assert_eq!(merged(&router, Some(5)).await, expected.map(|(shard, key)| (shard.to_owned(), key)));
        assert!(matches!(router.fan_out("no", &CountRows, &ALL).await, Err(FanOutError::Lookup(_))));
    });
}

/// A client that has the map from before a move asked the source, whose rows were deleted, and left out what
/// the target had: fewer rows than there were, and no error.
#[test]
fn no_row_is_missing_with_a_map_from_before_a_move_whose_source_is_deleted() {
    run(2, |env| async move {
        let setup = Setup::start(&env).await;
        let connector = twelve_rows(&setup);
        let (router, merging) = (setup.router(connector.clone()), setup.router(connector.clone()));
        router.fan_out("m", &CountRows, &ALL).await.expect("counts");
        merged(&merging, None).await;
        move_first_range(&setup, &connector).await;
        let counts = router.fan_out("m", &CountRows, &ALL).await.expect("counts").answers;
        assert_eq!(counts, counted([("s1", 8), ("s2", 4)]));
        assert_eq!(router.map().read_count(), 2);
        let rows = merged(&merging, None).await;
        assert_eq!(rows.iter().map(|(_, key)| *key).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
        assert_eq!(merging.map().read_count(), 2);
        // The same if some answers would do.
        let some = FanOutSettings { needed: Needed::SomeShards, ..ALL };
        let router = setup.router(connector.clone());
        router.map().get().await.expect("a map");
        setup.change(vec![place(None, "s2")]).await;
        setup.publish().await;
        let counts = router.fan_out("m", &CountRows, &some).await.expect("counts");
        assert!(counts.failed.is_empty() && counts.answers[0].0 == name("s1"), "{counts:?}");
    });
}

/// The source of a move is deleted between two pages of a merge: the next page would lack rows.
#[test]
fn a_merge_ends_when_rows_that_it_needs_were_moved_meanwhile() {
    run(3, |env| async move {
        let setup = Setup::start(&env).await;
        let connector = twelve_rows(&setup);
        let router = setup.router(connector.clone());
        let merge = router.merge("m", Arc::new(PageRows), |row: &ModelRow| row.0, None, ALL).await;
        let mut merge = merge.expect("a merge");
        assert!(merge.next().await.expect("a row").is_some());
        move_first_range(&setup, &connector).await;
        let error = loop {
            match merge.next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("rows are missing"),
                Err(error) => break error,
            }
        };
        assert!(error.is_late(), "{error}");
    });
}

#[test]
fn a_shard_that_does_not_know_the_newest_map_yet_or_is_offline_is_named() {
    run(4, |env| async move {
        let setup = Setup::start(&env).await;
        let connector = twelve_rows(&setup);
        let router = setup.router(connector.clone());
        setup.change(vec![place(None, "s1")]).await;
        let error = router.fan_out("m", &CountRows, &ALL).await.expect_err("s1 does not have it yet");
        assert!(error.is_late() && error.to_string().starts_with("shard `s1`"), "{error}");
        assert_eq!(router.map().read_count(), 3, "it was tried with newer maps");
        setup.change(vec![set_state(None, State::Offline)]).await;
        setup.publish().await;
        let some = FanOutSettings { needed: Needed::SomeShards, ..ALL };
        let counts = router.fan_out("m", &CountRows, &some).await.expect("counts");
        let offline = ShardFailure::Part(PartRefusal::Offline);
        assert_eq!((counts.failed.get(&name("s1")), counts.answers), (Some(&offline), counted([("s2", 4)])));
    });
}

/// No shard that is asked by the old map knows of the new pin.
#[test]
fn a_new_pin_on_a_shard_that_had_none_is_asked() {
    run(5, |env| async move {
        let setup = Setup::start(&env).await;
        let connector = twelve_rows(&setup);
        let router = setup.router(connector.clone());
        assert_eq!(router.fan_out("pins", &CountRows, &ALL).await.expect("counts").answers, []);
        let pin = MapChange::Pin { key: vec![5.into()], shard: name("s1") };
        setup.change(vec![Change::Map(name("pins"), pin)]).await;
        setup.publish().await;
        let counts = router.fan_out("pins", &CountRows, &ALL).await.expect("counts").answers;
        assert_eq!(counts, counted([("s1", 1)]));
    });
}

/// Shards that are not asked what they know: what says that an answer is complete is the age of the map.
#[test]
fn an_answer_of_a_shard_without_a_fence_that_holds_is_taken_while_the_map_is_young() {
    run(6, |env| async move {
        let setup = Setup::start(&env).await;
        let connector = Unasked(twelve_rows(&setup), Capabilities::STORAGE_TABLES);
        let router = setup.router(connector.clone());
        let slow = SlowCount(setup.clock.clone(), MAP_FOR_MAX / 4);
        assert_eq!(router.fan_out("m", &slow, &ALL).await.expect("counts").answers.len(), 3);
        setup.clock.sleep(MAP_FOR_MAX).await;
        assert_eq!(router.fan_out("m", &slow, &ALL).await.expect("by a newer map").answers.len(), 3);
        let slow = SlowCount(setup.clock.clone(), MAP_FOR_MAX);
        let error = router.fan_out("m", &slow, &ALL).await.expect_err("its rows may be gone by then");
        assert!(error.to_string().contains("older than 15s"), "{error}");
        // With a fence that holds a move waits for nothing.
        let router = setup.router(Unasked(connector.0, Capabilities::SQLITE));
        let error =
            router.fan_out("m", &CountRows, &ALL).await.expect_err("nothing says that it is complete");
        assert!(error.to_string().contains("was not read"), "{error}");
    });
}
