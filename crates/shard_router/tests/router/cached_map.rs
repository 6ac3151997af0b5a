//! The cached map: one read for all that wait, keys without a mapping, homes that fail, ages.

use crate::setup::{Setup, name, place, set_state};
use base::Environment;
use futures_util::future::join_all;
use shard_map::{Change, KeyValue, MapChange, State};
use shard_router::{
    AttemptError, Keys, LookupError, MapReadError, MapSettings, Routed, Router, RouterError, ShardWork,
};
use shard_store::{Access, MemoryFaults};
use sim::World;
use std::time::Duration;

const S: Duration = Duration::from_secs(1);

fn run<F: Future<Output = ()>>(life: impl FnOnce(Environment) -> F) {
    World::new(1).run(|env, _| life(env)).expect("no crash");
}

#[test]
fn many_that_wait_make_one_read() {
    run(|env| async move {
        let setup = Setup::start(&env).await;
        let map = setup.map(MapSettings::default());
        let reads = join_all((0..100).map(|_| map.get())).await;
        assert!(reads.iter().all(Result::is_ok));
        assert_eq!(map.read_count(), 1);
        // A hundred whose fence refused at one instant.
        let now = setup.clock.monotonic();
        let reads = join_all((0..100).map(|_| map.begun_after(now))).await;
        assert!(reads.iter().all(|read| read.as_ref().is_ok_and(|read| read.read_since >= now)));
        assert_eq!(map.read_count(), 2);
    });
}

#[test]
fn a_read_that_runs_already_is_too_old_for_a_fence_that_refused_later() {
    run(|env| async move {
        let setup = Setup::start(&env).await;
        let map = setup.map(MapSettings { read_interval_min: Duration::ZERO, ..MapSettings::default() });
        let refused = async {
            setup.clock.sleep(Duration::from_millis(1)).await;
            let now = setup.clock.monotonic();
            let read = map.begun_after(now).await.expect("a map");
            assert!(read.read_since >= now, "its read began before the refusal");
        };
        let (first, ()) = futures_util::future::join(map.get(), refused).await;
        first.expect("a map");
        assert_eq!(map.read_count(), 2);
    });
}

#[test]
fn reads_keep_their_distance() {
    run(|env| async move {
        let setup = Setup::start(&env).await;
        let settings = MapSettings { read_interval_min: S, ..MapSettings::default() };
        let map = setup.map(settings);
        let started_at = setup.clock.monotonic();
        for _ in 0..5 {
            map.begun_after(setup.clock.monotonic()).await.expect("a map");
        }
        assert_eq!(map.read_count(), 5);
        assert!(setup.clock.monotonic() - started_at >= 4 * S);
    });
}

#[test]
fn a_read_goes_on_though_nothing_waits_for_it() {
    run(|env| async move {
        let setup = Setup::start(&env).await;
        let map = setup.map(MapSettings::default());
        tokio::select! {
            biased;
            _ = map.get() => panic!("the home takes its time"),
            () = setup.clock.sleep(Duration::from_millis(1)) => {}
        }
        setup.clock.sleep(S).await;
        assert!(map.cached().is_some());
        assert_eq!(map.read_count(), 1);
    });
}

#[test]
fn an_old_map_serves_while_the_home_is_gone_and_not_for_ever() {
    run(|env| async move {
        let setup = Setup::start(&env).await;
        let settings = MapSettings { refresh_after: 10 * S, age_max: 100 * S, ..MapSettings::default() };
        let map = setup.map(settings);
        let first = map.get().await.expect("a map");
        setup.change(vec![set_state(None, State::Offline)]).await;
        setup.clock.sleep(9 * S).await;
        assert_eq!(map.get().await.expect("a map").catalog, first.catalog);
        setup.clock.sleep(2 * S).await;
        // Old, and read beside.
        assert_eq!(map.get().await.expect("a map").catalog, first.catalog);
        setup.clock.sleep(S).await;
        assert_ne!(map.get().await.expect("a map").catalog, first.catalog);
        setup.records.set_faults(MemoryFaults { not_done_one_in: 1, done_one_in: 0 });
        setup.clock.sleep(90 * S).await;
        map.get().await.expect("an old map");
        setup.clock.sleep(20 * S).await;
        assert!(map.get().await.is_err() && map.cached().is_none());
        // The home is back; the failure is passed on for a while.
        setup.records.set_faults(MemoryFaults::default());
        let count = map.read_count();
        assert!(map.get().await.is_err());
        assert_eq!(map.read_count(), count);
        setup.clock.sleep(3 * S).await;
        map.get().await.expect("a map");
    });
}

#[test]
fn a_home_without_a_map_is_not_read_again_for_a_while() {
    run(|env| async move {
        let setup = Setup::without_catalog(&env);
        let map = setup.map(MapSettings::default());
        let count = async |times: usize| {
            for _ in 0..times {
                let error = map.get().await.expect_err("there is none");
                assert!(matches!(error, MapReadError::Home(_)), "{error}");
            }
            map.read_count()
        };
        assert_eq!(count(50).await, 1);
        setup.clock.sleep(3 * S).await;
        assert_eq!(count(50).await, 2);
    });
}

/// Does nothing, on any shard.
struct Nothing;

impl<T: Send> ShardWork<T> for Nothing {
    type Output = String;
    type Error = String;

    fn attempt<'a>(
        &'a mut self,
        _connection: &'a mut T,
        routed: &'a Routed,
    ) -> base::BoxFuture<'a, Result<String, AttemptError<String>>> {
        Box::pin(async move { Ok(routed.shard().name.to_string()) })
    }
}

async fn ask(
    router: &Router<crate::model::ModelConnector>,
    map: &str,
    key: i32,
) -> Result<String, RouterError<String>> {
    router.run(Keys::new(map, &[&[KeyValue::from(key)]]), Access::Write, &mut Nothing).await
}

#[test]
fn a_key_without_a_mapping_is_not_looked_up_again_for_a_while() {
    run(|env| async move {
        let setup = Setup::start(&env).await;
        let router = setup.router(crate::model::ModelConnector::new(&setup));
        for _ in 0..50 {
            let none = ask(&router, "pins", 17).await;
            assert!(matches!(none, Err(RouterError::Lookup(LookupError::Route(_)))), "{none:?}");
        }
        // The first read, and one for the key.
        assert_eq!(router.map().read_count(), 2);
        for _ in 0..50 {
            assert!(matches!(
                ask(&router, "no", 1).await,
                Err(RouterError::Lookup(LookupError::NoMap { .. }))
            ));
        }
        assert_eq!(router.map().read_count(), 3);
        // A key that was pinned meanwhile is found after the while at the latest, another key at once.
        let pin = |key: i32| MapChange::Pin { key: vec![key.into()], shard: name("s1") };
        setup.change(vec![Change::Map(name("pins"), pin(17)), Change::Map(name("pins"), pin(18))]).await;
        assert_eq!(ask(&router, "pins", 18).await.expect("it is pinned"), "s1");
        assert_eq!(ask(&router, "pins", 17).await.expect("the map that was read has it"), "s1");
    });
}

#[test]
fn keys_of_two_shards_and_states_that_do_not_allow_it_are_refused_before_anything_is_sent() {
    run(|env| async move {
        let setup = Setup::start(&env).await;
        let router = setup.router(crate::model::ModelConnector::new(&setup));
        let (one, other) = ([KeyValue::from(1)], [KeyValue::from(5)]);
        let both = router.run(Keys::new("m", &[&one, &other]), Access::Write, &mut Nothing).await;
        let both = both.expect_err("they are on two shards").to_string();
        assert!(both.contains("`s0`") && both.contains("`s1`"), "{both}");
        setup.change(vec![set_state(None, State::ReadOnly)]).await;
        setup.clock.sleep(60 * S).await;
        // The cached map is old; it is read beside the first.
        assert_eq!(ask(&router, "m", 1).await.expect("by the old map"), "s0");
        setup.clock.sleep(S).await;
        let refused = ask(&router, "m", 1).await.expect_err("read-only");
        assert!(matches!(refused, RouterError::Refused { shard: None, .. }), "{refused}");
        // It is online again, elsewhere; a map that does not allow it is read again at once.
        setup.change(vec![place(None, "s2"), set_state(None, State::Online)]).await;
        assert_eq!(ask(&router, "m", 1).await.expect("online"), "s2");
    });
}
