//! Random histories under a seed, in virtual time: clients write and read keys with maps of any age, pause
//! before a write for longer than a move takes, lose answers, have clocks that are off by up to the bound; a
//! mover moves ranges between three shards.
//!
//! In the end: each write that was acknowledged is on the shard that the map says and on no other, and each
//! read, of a key or of all shards, had all that was acknowledged before it began. Faults that are planted
//! must be found, each by a seed that is printed. A failure names its seed; `LARIMAR_SIM_SEED` runs it alone.

use crate::model::{AllRows, Client, Fencing, ModelConnector, ModelRow, ReadRows, WriteRow};
use crate::setup::{SECOND, Setup, THIRD, WrongClock, name, place, set_state};
use base::clock::TICKS_PER_SECOND;
use base::{Clock, Environment, Random};
use futures_util::future::{join, join_all};
use parking_lot::Mutex;
use shard_backend::Capabilities;
use shard_map::{KeyValue, Name, State};
use shard_router::{
    CachedMap, FanOutError, FanOutSettings, Keys, MAP_FOR_MAX, MapSettings, PoolSettings, Router,
    RouterError, RouterParts, ShardCredentials, ShardFailure,
};
use shard_store::Access;
use sim::World;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SEEDS: u64 = 100;
const CLIENTS: u64 = 4;
const MOVES: usize = 6;
const KEYS: u64 = 12;
/// How far clocks may be off, to either side.
const CLOCK_BOUND_S: u64 = 2;

#[derive(Default)]
struct Seen {
    acknowledged: Mutex<BTreeSet<ModelRow>>,
    next: AtomicU64,
    late: AtomicU64,
    wrong_read: Mutex<Option<String>>,
    is_over: std::sync::atomic::AtomicBool,
}

/// What was wrong, if anything was, and how often a late client was routed anew.
fn history(seed: u64, fencing: Fencing) -> (Result<(), String>, u64) {
    World::new(seed).run(|env, _| live(env, fencing)).expect("no crash")
}

async fn live(env: Environment, fencing: Fencing) -> (Result<(), String>, u64) {
    let setup = Setup::start(&env).await;
    let mut connector = ModelConnector::new(&setup);
    connector.believes_all = fencing == Fencing::BelievesAll;
    if fencing.is_signed() {
        connector.capabilities = Capabilities::STORAGE_TABLES;
    }
    let seen = Arc::new(Seen::default());
    let clients = (0..CLIENTS).map(|_| write_and_read(&setup, &connector, &seen, fencing));
    let moves = async {
        for _ in 0..MOVES {
            move_one(&setup, &connector, fencing).await;
        }
        seen.is_over.store(true, Ordering::Relaxed);
    };
    join(join_all(clients), moves).await;
    (check(&setup, &connector, &seen).await, seen.late.load(Ordering::Relaxed))
}

async fn write_and_read(setup: &Setup, connector: &ModelConnector, seen: &Seen, fencing: Fencing) {
    let random = setup.random.clone();
    let off = (random.next_u64() % (2 * CLOCK_BOUND_S + 1)) as i64 - CLOCK_BOUND_S as i64;
    let by_ticks = off * TICKS_PER_SECOND as i64;
    let clock: Arc<dyn Clock> = Arc::new(WrongClock { clock: setup.clock.clone(), by_ticks });
    let client = Client { clock: clock.clone(), true_clock: setup.clock.clone(), random, fencing };
    let map =
        CachedMap::new(setup.home.clone(), clock.clone(), setup.spawner.clone(), MapSettings::default());
    let router = Router::new(RouterParts {
        map,
        connector: Arc::new(connector.clone()),
        credentials: Arc::new(ShardCredentials::default()),
        clock,
        spawner: setup.spawner.clone(),
        pool: PoolSettings::default(),
    });
    while !seen.is_over.load(Ordering::Relaxed) {
        let key = client.below(KEYS) as i32;
        match client.below(6) {
            0 | 1 => read(&router, &client, seen, key).await,
            2 => read_all(&router, &client, seen).await,
            _ => write(&router, &client, seen, key).await,
        }
        setup.clock.sleep(Duration::from_millis(client.below(2000))).await;
    }
}

async fn write(router: &Router<ModelConnector>, client: &Client, seen: &Seen, key: i32) {
    let row = (key, seen.next.fetch_add(1, Ordering::Relaxed));
    let mut work = WriteRow { client: client.clone(), row, attempts: 0, was_uncertain: false };
    let outcome = router.run(Keys::new("m", &[&[KeyValue::from(key)]]), Access::Write, &mut work).await;
    assert!(work.attempts <= 2, "{} attempts", work.attempts);
    seen.late.fetch_add(u64::from(work.attempts == 2), Ordering::Relaxed);
    match outcome {
        Ok(()) => drop(seen.acknowledged.lock().insert(row)),
        Err(error) => assert_eq!(error.may_be_done(), work.was_uncertain, "{error}"),
    }
}

async fn read(router: &Router<ModelConnector>, client: &Client, seen: &Seen, key: i32) {
    let before: BTreeSet<ModelRow> =
        seen.acknowledged.lock().iter().filter(|(there, _)| *there == key).copied().collect();
    let mut work = ReadRows { client: client.clone(), key };
    match router.run(Keys::new("m", &[&[KeyValue::from(key)]]), Access::Read, &mut work).await {
        Ok(rows) if before.is_subset(&rows) => {}
        Ok(rows) => {
            let missing = before.difference(&rows).next();
            *seen.wrong_read.lock() = Some(format!("a read of key {key} lacks {missing:?}"));
        }
        Err(RouterError::Refused { .. } | RouterError::MapTooOld { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

/// What was acknowledged before all shards were asked is in their answers, once.
async fn read_all(router: &Router<ModelConnector>, client: &Client, seen: &Seen) {
    let before = seen.acknowledged.lock().clone();
    let answers = match router.fan_out("m", &AllRows(client.clone()), &FanOutSettings::default()).await {
        Ok(answers) => answers.answers,
        Err(error) if error.is_late() => return,
        Err(FanOutError::Shard { failure: ShardFailure::TimedOut(_), .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let rows: Vec<ModelRow> = answers.into_iter().flat_map(|(_, rows)| rows).collect();
    let once: BTreeSet<ModelRow> = rows.iter().copied().collect();
    let wrong = match before.difference(&once).next() {
        Some(missing) => format!("all shards together lack {missing:?}"),
        None if once.len() < rows.len() => "all shards together have a row twice".to_owned(),
        None => return,
    };
    *seen.wrong_read.lock() = Some(wrong);
}

/// Marks a range read-only, waits for signatures, copies its rows, switches, deletes them at the source.
async fn move_one(setup: &Setup, connector: &ModelConnector, fencing: Fencing) {
    let below = |bound: u64| setup.random.next_u64() % bound;
    setup.clock.sleep(Duration::from_millis(below(20_000))).await;
    let (low, keys) = match below(3) {
        0 => (None, 0..SECOND),
        1 => (Some(SECOND), SECOND..THIRD),
        _ => (Some(THIRD), THIRD..KEYS as i32),
    };
    let catalog = setup.home.load().await.expect("a catalog");
    let route = catalog.map("m").expect("the map").route(&[KeyValue::from(keys.start)]).expect("a route");
    let source = route.placement.shard.clone();
    let others: Vec<&Name> = connector.shards.keys().filter(|shard| **shard != source).collect();
    let target = others[below(2) as usize].clone();
    setup.change(vec![set_state(low, State::ReadOnly)]).await;
    setup.publish().await;
    if fencing.is_signed() {
        // The clocks' bound to either side.
        setup.clock.sleep(MAP_FOR_MAX + Duration::from_secs(CLOCK_BOUND_S)).await;
    }
    let rows: Vec<ModelRow> =
        connector.shards[&source].rows.lock().iter().filter(|(key, _)| keys.contains(key)).copied().collect();
    setup.clock.sleep(Duration::from_millis(below(5000))).await;
    connector.shards[&target].rows.lock().extend(rows.iter().copied());
    setup.change(vec![place(low, target.as_str()), set_state(low, State::Online)]).await;
    setup.publish().await;
    connector.shards[&source].rows.lock().retain(|row| !rows.contains(row));
}

async fn check(setup: &Setup, connector: &ModelConnector, seen: &Seen) -> Result<(), String> {
    let catalog = setup.home.load().await.expect("a catalog");
    let map = catalog.map("m").expect("the map");
    for row in &*seen.acknowledged.lock() {
        let owner = &map.route(&[KeyValue::from(row.0)]).expect("a route").placement.shard;
        for (shard, there) in &connector.shards {
            match (shard == owner, there.rows.lock().contains(row)) {
                (true, false) => return Err(format!("{row:?} is lost: it is not on `{owner}`")),
                (false, true) => return Err(format!("{row:?} is on `{shard}`, and on `{owner}`")),
                _ => {}
            }
        }
    }
    seen.wrong_read.lock().take().map_or(Ok(()), Err)
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(SEEDS)).collect(),
    }
}

#[test]
fn every_acknowledged_write_is_on_one_shard() {
    for fencing in [Fencing::Held, Fencing::Signed] {
        let mut late = 0;
        for seed in seeds() {
            let (outcome, late_here) = history(seed, fencing);
            outcome.unwrap_or_else(|wrong| panic!("seed {seed}, {fencing:?}: {wrong}"));
            late += late_here;
        }
        println!("{fencing:?}: {late} writes of late clients were routed anew");
        assert!(late > 0, "{fencing:?}: no client was late");
    }
}

#[test]
fn planted_faults_are_found() {
    let planted =
        [Fencing::NoFence, Fencing::WithoutLock, Fencing::SignatureOutlivesMap, Fencing::BelievesAll];
    for fencing in planted {
        let found = (0..SEEDS).find_map(|seed| Some((seed, history(seed, fencing).0.err()?)));
        let (seed, wrong) = found.unwrap_or_else(|| panic!("{fencing:?} is not found"));
        println!("{fencing:?} is found by seed {seed}: {wrong}");
    }
}

/// The worst client: it has the map, and sleeps through a whole move before it writes.
#[test]
fn a_client_that_slept_through_a_move_is_refused_and_routed_right() {
    World::new(7).run(|env, _| async move {
        let setup = Setup::start(&env).await;
        let connector = ModelConnector::new(&setup);
        let router = setup.router(connector.clone());
        router.map().get().await.expect("a map");
        setup.change(vec![place(None, "s2")]).await;
        setup.publish().await;
        let client = Client {
            clock: setup.clock.clone(),
            true_clock: setup.clock.clone(),
            random: Arc::new(Never),
            fencing: Fencing::Held,
        };
        let mut work = WriteRow { client, row: (1, 1), attempts: 0, was_uncertain: false };
        let key = [KeyValue::from(1)];
        router.run(Keys::new("m", &[&key]), Access::Write, &mut work).await.expect("written");
        assert_eq!((work.attempts, router.map().read_count()), (2, 2));
        let on = |shard: &str| connector.shards[&name(shard)].rows.lock().contains(&(1, 1));
        assert!(on("s2") && !on("s0"));
        // Read-only: the shard says so, and no newer map helps.
        setup.change(vec![set_state(None, State::ReadOnly)]).await;
        setup.publish().await;
        let refused = router.run(Keys::new("m", &[&key]), Access::Write, &mut work).await;
        assert!(matches!(refused, Err(RouterError::Refused { shard: None, .. })), "{refused:?}");
    });
}

/// Draws the number 1 always: short pauses, no lost answers.
struct Never;

impl Random for Never {
    fn next_u64(&self) -> u64 {
        1
    }
}
