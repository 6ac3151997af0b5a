//! The bounds of a pool, in virtual time.

use super::connector::{ConnectError, ShardConnector};
use super::credentials::ShardCredentials;
use super::pool::{Pool, PoolError, PoolParts};
use super::settings::PoolSettings;
use base::{BoxFuture, Environment};
use futures_util::future::join_all;
use shard_backend::Capabilities;
use shard_map::{Name, Shard};
use sim::World;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Default)]
struct Counted {
    made: AtomicUsize,
    open: Arc<AtomicUsize>,
    open_max: AtomicUsize,
    hangs: bool,
}

/// A connection, counted until it is dropped.
struct One(Arc<AtomicUsize>);

impl Drop for One {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ShardConnector for Counted {
    type Connection = One;

    fn capabilities(&self) -> Capabilities {
        Capabilities::SQLITE
    }

    fn connect<'a>(
        &'a self,
        _shard: &'a Shard,
        _credentials: &'a ShardCredentials,
    ) -> BoxFuture<'a, Result<One, ConnectError>> {
        Box::pin(async move {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            self.made.fetch_add(1, Ordering::Relaxed);
            let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
            self.open_max.fetch_max(open, Ordering::Relaxed);
            Ok(One(self.open.clone()))
        })
    }
}

const SETTINGS: PoolSettings = PoolSettings {
    connections_max: 3,
    waiters_max: 5,
    wait_for_max: Duration::from_secs(2),
    connect_for_max: Duration::from_secs(1),
    operation_for_max: Duration::from_secs(60),
    idle_for_max: Duration::from_secs(10),
};

fn pool(env: &Environment, connector: &Arc<Counted>) -> Arc<Pool<Counted>> {
    let shard = Shard::new(Name::parse("one").expect("a name"), "here");
    let credentials = Arc::new(ShardCredentials::default());
    let (clock, spawner) = (env.clock.clone(), env.spawner.clone());
    Pool::new(
        shard,
        PoolParts { connector: connector.clone(), credentials, clock, spawner, settings: SETTINGS },
    )
}

#[test]
fn operations_share_few_connections_and_wait_within_bounds() {
    let world = World::new(1);
    let outcomes = world.run(|env, _| async move {
        let connector = Arc::new(Counted::default());
        let pool = pool(&env, &connector);
        let operation = || async {
            let lent = pool.lend().await?;
            env.clock.sleep(Duration::from_millis(1500)).await;
            lent.keep();
            Ok(())
        };
        // Three have a connection at once, five wait, of which three get one in time; two fail at once.
        let outcomes = join_all((0..10).map(|_| operation())).await;
        assert_eq!(
            (connector.made.load(Ordering::Relaxed), connector.open_max.load(Ordering::Relaxed)),
            (3, 3)
        );
        outcomes
    });
    let outcomes = outcomes.expect("no crash");
    let count =
        |is: fn(&Result<(), PoolError>) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
    assert_eq!(count(|outcome| outcome.is_ok()), 6);
    assert_eq!(count(|outcome| matches!(outcome, Err(PoolError::TooManyWait { .. }))), 2);
    assert_eq!(count(|outcome| matches!(outcome, Err(PoolError::WaitedTooLong { .. }))), 2);
}

#[test]
fn a_connection_is_closed_unless_it_is_kept_and_when_it_was_idle_for_too_long() {
    World::new(2).run(|env, _| async move {
        let connector = Arc::new(Counted::default());
        let pool = pool(&env, &connector);
        drop(pool.lend().await.map_err(drop));
        assert_eq!(connector.open.load(Ordering::Relaxed), 0, "an error closes it");
        pool.lend().await.map_err(drop).expect("a connection").keep();
        pool.lend().await.map_err(drop).expect("the same").keep();
        assert_eq!((connector.made.load(Ordering::Relaxed), pool.idle_count()), (2, 1));
        env.clock.sleep(2 * SETTINGS.idle_for_max).await;
        assert_eq!((connector.open.load(Ordering::Relaxed), pool.idle_count()), (0, 0), "nothing uses it");
        pool.lend().await.map_err(drop).expect("a new one").keep();
        assert_eq!(connector.made.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn a_closed_pool_lends_nothing_and_keeps_nothing() {
    World::new(3).run(|env, _| async move {
        let connector = Arc::new(Counted::default());
        let pool = pool(&env, &connector);
        let lent = pool.lend().await.map_err(drop).expect("a connection");
        pool.lend().await.map_err(drop).expect("another").keep();
        pool.close();
        assert_eq!(connector.open.load(Ordering::Relaxed), 1);
        assert!(matches!(pool.lend().await.map(drop), Err(PoolError::Closed { .. })));
        lent.keep();
        assert_eq!((connector.open.load(Ordering::Relaxed), pool.idle_count()), (0, 0));
    });
}

#[test]
fn a_connection_that_hangs_is_given_up() {
    World::new(4).run(|env, _| async move {
        let connector = Arc::new(Counted { hangs: true, ..Counted::default() });
        let pool = pool(&env, &connector);
        let started_at = env.clock.monotonic();
        let outcome = pool.lend().await.map(drop);
        assert!(matches!(outcome, Err(PoolError::Connect { .. })), "{outcome:?}");
        assert_eq!(env.clock.monotonic() - started_at, SETTINGS.connect_for_max);
    });
}
