//! Shards that are storage accounts, served by the real front end: here one account is all three.

use crate::served_account::ServedAccount;
use crate::setup::{SlowRecords, WrongClock, changes, name};
use base::connector::SystemConnector;
use base::memory_disk::MemoryDisk;
use base::system::{SystemRandom, TokioSpawner};
use shard_backend::Fence;
use shard_map::KeyValue;
use shard_router::{
    CachedMap, MAP_FOR_MAX, MapSettings, PoolSettings, Router, RouterError, RouterParts, ShardCredentials,
    TablesConnector, TablesError,
};
use shard_store::{CatalogHome, HomeError, MemoryRecords};
use std::sync::Arc;
use std::time::Duration;
use storage_client::{
    DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME, Entity, GroupOperation, Proxies, Settings,
    Surroundings,
};

async fn router(
    served: &ServedAccount,
    clock_by_s: i64,
    home_for: Duration,
    signed_for: Duration,
) -> Router<TablesConnector> {
    let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let records = Arc::new(MemoryRecords::new("the home", env.random.clone()));
    let slow = SlowRecords { records, clock: env.clock.clone(), operation_for: home_for };
    let home = CatalogHome::new(Arc::new(slow), env.clock.clone(), env.random.clone());
    let empty = home.create(&name("catalog")).await.expect("a catalog");
    let location = served.location();
    let changes = changes([location.as_str(); 3]);
    home.change::<HomeError>(&empty, "", |_| Ok(changes.clone())).await.expect("a change");
    let by_ticks = clock_by_s * base::clock::TICKS_PER_SECOND as i64;
    let clock = Arc::new(WrongClock { clock: env.clock.clone(), by_ticks });
    let surroundings = Surroundings {
        clock: clock.clone(),
        random: Arc::new(SystemRandom::new()),
        spawner: Arc::new(TokioSpawner::current()),
        connector: Arc::new(SystemConnector),
    };
    let settings = Settings { proxies: Proxies::none(), retry: retry::Policy::none(), ..Settings::default() };
    let map = CachedMap::new(home, clock.clone(), env.spawner.clone(), MapSettings::default());
    let (user, secret) = (DEVELOPMENT_ACCOUNT_NAME.to_owned(), DEVELOPMENT_ACCOUNT_KEY.to_owned());
    Router::new(RouterParts {
        map,
        connector: Arc::new(TablesConnector::new(settings, surroundings).signed_for(signed_for)),
        credentials: Arc::new(ShardCredentials { user, secret }),
        clock,
        spawner: env.spawner,
        pool: PoolSettings::default(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_an_account_are_signed_for_a_partition_and_a_while() {
    let served = ServedAccount::serve().await;
    served.client().table("Notes").create().await.expect("a table");
    let router = router(&served, 0, Duration::ZERO, MAP_FOR_MAX).await;
    assert_eq!(router.capabilities().fence, Fence::Expires);
    let key = [KeyValue::from(1)];
    let insert = |partition: &str, row: &str| GroupOperation::Insert(Entity::new(partition, row));
    let group = [insert("1 a", "x"), insert("1 a", "y")];
    let etags = router.submit("m", &key, "Notes", "1 a", &group).await.expect("submitted");
    assert!(etags.iter().all(Option::is_some) && etags.len() == 2);
    let entity = router.entity("m", &key, "Notes", "1 a", "x").await.expect("read");
    assert_eq!(entity.map(|entity| entity.row_key), Some("x".to_owned()));
    assert_eq!(router.entity("m", &key, "Notes", "1 a", "z").await.expect("read"), None);
    let other = [insert("1 a", "z"), insert("2", "z")];
    let error = router.submit("m", &key, "Notes", "1 a", &other).await.expect_err("two partitions");
    let RouterError::Failed { error: TablesError::OtherPartition { index: 1 }, .. } = &error else {
        panic!("{error}")
    };
    // An answer of the service, with which nothing was done.
    let again = router.submit("m", &key, "Notes", "1 a", &group).await.expect_err("they are there");
    assert!(!again.may_be_done(), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_refuses_a_signature_that_ended() {
    let served = ServedAccount::serve().await;
    served.client().table("Notes").create().await.expect("a table");
    // This process' clock is a minute behind: for the service its signatures have ended when they come.
    let router = router(&served, -60, Duration::ZERO, MAP_FOR_MAX).await;
    let group = [GroupOperation::Insert(Entity::new("1", "x"))];
    let error = router.submit("m", &[KeyValue::from(1)], "Notes", "1", &group).await;
    let error = error.expect_err("it ended 45 s ago");
    assert!(!error.may_be_done() && error.to_string().contains("AuthenticationFailed"), "{error}");
    let there = served.client().table("Notes").get_if_present("1", "x").await;
    assert_eq!(there.expect("read"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_with_a_map_whose_read_began_too_long_ago() {
    let served = ServedAccount::serve().await;
    served.client().table("Notes").create().await.expect("a table");
    // Each operation of the map's home takes longer than T, so any read of the map ends after the signatures
    // that count from its beginning.
    let home_for = Duration::from_millis(1100);
    let router = router(&served, 0, home_for, Duration::from_secs(1)).await;
    let group = [GroupOperation::Insert(Entity::new("1", "x"))];
    let error = router.submit("m", &[KeyValue::from(1)], "Notes", "1", &group).await;
    let error = error.expect_err("a signature that counts from now would do");
    assert!(matches!(error, RouterError::MapTooOld { .. }) && !error.may_be_done(), "{error}");
    let there = served.client().table("Notes").get_if_present("1", "x").await;
    assert_eq!(there.expect("read"), None);
}
