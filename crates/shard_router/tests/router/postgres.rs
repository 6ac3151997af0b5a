//! Shards that are Postgres databases, on a server that the test starts and ends.

use crate::postgres_server::PostgresServer;
use crate::setup::{changes, name, place, set_state};
use base::connector::SystemConnector;
use base::memory_disk::MemoryDisk;
use base::{BoxFuture, Environment};
use shard_map::{Catalog, Change, KeyValue, Name, State};
use shard_router::{
    CachedMap, FanOutSettings, Keys, MapSettings, PoolSettings, PostgresConnection, PostgresConnector,
    PostgresError, PostgresTransaction, Router, RouterError, RouterParts, ShardCredentials, ShardPart,
    ShardQuery,
};
use shard_store::{
    CatalogHome, HomeError, LocalStore, LocalStores, MemoryRecords, PostgresDatabase, PostgresLocal,
    PostgresSurroundings,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

struct Databases {
    env: Environment,
    server: PostgresServer,
    home: CatalogHome,
    catalog: Catalog,
}

impl Databases {
    async fn start() -> Self {
        let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
        let records = Arc::new(MemoryRecords::new("the home", env.random.clone()));
        let home = CatalogHome::new(records, env.clock.clone(), env.random.clone());
        let catalog = home.create(&name("catalog")).await.expect("a catalog");
        let server = PostgresServer::start();
        for shard in ["s0", "s1", "s2"] {
            server.create_database(shard);
            server.run(shard, "CREATE TABLE notes (key int, note text, CHECK (key <> 13))");
        }
        let port = server.config("s0").get_ports()[0];
        let location = |shard: &str| format!("postgres://127.0.0.1:{port}/{shard}");
        let locations = [location("s0"), location("s1"), location("s2")];
        let mut databases = Databases { env, server, home, catalog };
        databases.change(changes([&locations[0], &locations[1], &locations[2]])).await;
        databases.publish().await;
        databases
    }

    async fn change(&mut self, changes: Vec<Change>) {
        let changed = self.home.change::<HomeError>(&self.catalog, "", |_| Ok(changes.clone())).await;
        self.catalog = changed.expect("a change").catalog;
    }

    async fn publish(&self) {
        let store = |shard: &Name| {
            let surroundings = PostgresSurroundings {
                connector: Arc::new(SystemConnector),
                spawner: self.env.spawner.clone(),
                clock: self.env.clock.clone(),
            };
            let database = PostgresDatabase::new(self.server.config(shard.as_str()), surroundings);
            (shard.clone(), Arc::new(PostgresLocal::new(database)) as Arc<dyn LocalStore>)
        };
        let stores: LocalStores = self.catalog.shards().map(|shard| store(&shard.name)).collect();
        let published = self.home.publish(&self.catalog, &stores).await.expect("published");
        assert!(published.is_complete(), "{published:?}");
    }

    fn router(&self) -> Router<PostgresConnector> {
        let (clock, spawner) = (self.env.clock.clone(), self.env.spawner.clone());
        let map = CachedMap::new(self.home.clone(), clock.clone(), spawner.clone(), MapSettings::default());
        Router::new(RouterParts {
            map,
            connector: Arc::new(PostgresConnector::new(Arc::new(SystemConnector), spawner.clone())),
            credentials: Arc::new(ShardCredentials { user: "shard".to_owned(), secret: String::new() }),
            clock,
            spawner,
            pool: PoolSettings::default(),
        })
    }
}

type Answer<'t, T> = BoxFuture<'t, Result<T, PostgresError>>;

const INSERT: &str = "INSERT INTO notes VALUES ($1, $2)";

fn insert<'t>(transaction: &'t PostgresTransaction<'t>) -> Answer<'t, u64> {
    Box::pin(transaction.execute(INSERT, &[&1_i32, &"hello"]))
}

fn count<'t>(transaction: &'t PostgresTransaction<'t>) -> Answer<'t, i64> {
    Box::pin(async move {
        let rows = transaction.query("SELECT count(*) FROM notes", &[]).await?;
        Ok(rows[0].try_get(0)?)
    })
}

/// Which connection it is.
fn process<'t>(transaction: &'t PostgresTransaction<'t>) -> Answer<'t, i32> {
    Box::pin(async move { Ok(transaction.query("SELECT pg_backend_pid()", &[]).await?[0].try_get(0)?) })
}

async fn write(router: &Router<PostgresConnector>, key: i32) -> Result<u64, RouterError<PostgresError>> {
    router.write(Keys::new("m", &[&[KeyValue::from(key)]]), insert).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_client_is_refused_in_postgres_and_routed_right() {
    let mut databases = Databases::start().await;
    let router = databases.router();
    let (zero, five) = ([KeyValue::from(1)], [KeyValue::from(5)]);
    // The second write has its first statement beside the fence.
    write(&router, 1).await.expect("written");
    write(&router, 1).await.expect("written");
    assert_eq!(router.read("m", &zero, count).await.expect("read"), 2);
    databases.change(vec![place(None, "s1")]).await;
    databases.publish().await;
    write(&router, 1).await.expect("written");
    assert_eq!(router.map().read_count(), 2);
    assert_eq!(router.read("m", &five, count).await.expect("read"), 1);
    // Nothing of the attempt that was refused is in the shard that it was sent to.
    databases.change(vec![place(None, "s0")]).await;
    databases.publish().await;
    assert_eq!(router.read("m", &zero, count).await.expect("read"), 2);
    databases.change(vec![set_state(None, State::ReadOnly)]).await;
    databases.publish().await;
    let refused = write(&router, 1).await.expect_err("read-only");
    assert!(matches!(refused, RouterError::Refused { .. }), "{refused}");
    assert_eq!(router.read("m", &zero, count).await.expect("reads pass"), 2);
}

async fn execute(router: &Router<PostgresConnector>, key: i32) -> Result<u64, RouterError<PostgresError>> {
    router.execute(Keys::new("m", &[&[KeyValue::from(key)]]), INSERT, &[&key, &"hello"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_statement_is_refused_in_postgres_and_routed_right() {
    let mut databases = Databases::start().await;
    let router = databases.router();
    let five = [KeyValue::from(5)];
    for _ in 0..2 {
        assert_eq!(execute(&router, 1).await.expect("written"), 1);
    }
    databases.change(vec![place(None, "s1")]).await;
    databases.publish().await;
    // The first attempt is with the map of before.
    assert_eq!(execute(&router, 1).await.expect("written"), 1);
    assert_eq!(router.map().read_count(), 2);
    assert_eq!(router.read("m", &five, count).await.expect("read"), 1);
    databases.change(vec![set_state(None, State::ReadOnly)]).await;
    databases.publish().await;
    let refused = execute(&router, 1).await.expect_err("read-only");
    assert!(matches!(refused, RouterError::Refused { .. }), "{refused}");
    assert!(!refused.may_be_done());
    databases.change(vec![place(None, "s0"), set_state(None, State::Online)]).await;
    databases.publish().await;
    // What was refused is in neither.
    assert_eq!(router.read("m", &[KeyValue::from(1)], count).await.expect("read"), 2);
    assert_eq!(router.read("m", &five, count).await.expect("read"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_statement_that_failed_did_nothing_and_its_connection_serves_again() {
    let databases = Databases::start().await;
    let router = databases.router();
    let key = [KeyValue::from(1)];
    let first = router.read("m", &key, process).await.expect("read");
    for statement in ["INSERT INTO notes VALUES (13, 'the check')", "INSERT INTO nowhere VALUES (1)", "none"]
    {
        for _ in 0..2 {
            let error = router.execute(Keys::new("m", &[&key]), statement, &[]).await.expect_err(statement);
            assert!(matches!(error, RouterError::Failed { .. }) && !error.may_be_done(), "{error}");
        }
    }
    assert_eq!(execute(&router, 1).await.expect("written"), 1);
    assert_eq!(router.read("m", &key, count).await.expect("read"), 1);
    assert_eq!(router.read("m", &key, process).await.expect("read"), first);
    // A constraint that is looked at by the commit.
    databases
        .server
        .run("s0", "ALTER TABLE notes ADD CONSTRAINT once UNIQUE (key) DEFERRABLE INITIALLY DEFERRED");
    let error = execute(&router, 1).await.expect_err("it is there");
    assert!(!error.may_be_done(), "{error}");
    assert_eq!(router.read("m", &key, count).await.expect("read"), 1);
}

/// The driver can't read what it answers, and the database has done it.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_whose_answer_can_not_be_read_may_be_done() {
    let databases = Databases::start().await;
    let router = databases.router();
    let key = [KeyValue::from(1)];
    execute(&router, 1).await.expect("written");
    let copy = "COPY (DELETE FROM notes WHERE key = 1 RETURNING *) TO STDOUT";
    let error = router.execute(Keys::new("m", &[&key]), copy, &[]).await.expect_err("no rows are counted");
    assert!(error.may_be_done(), "{error}");
    assert_eq!(router.read("m", &key, count).await.expect("read"), 0, "it was done");
    // What was not sent was not done.
    let error =
        router.execute(Keys::new("m", &[&key]), INSERT, &[&1_i32]).await.expect_err("too few parameters");
    assert!(!error.may_be_done(), "{error}");
    let error =
        router.execute(Keys::new("m", &[&key]), INSERT, &[&1_i64, &"text"]).await.expect_err("no int4");
    assert!(!error.may_be_done(), "{error}");
    assert_eq!(router.read("m", &key, count).await.expect("read"), 0);
}

/// If the statement that begins a transaction is ended before it began one, those sent behind it would be
/// transactions of their own, without a fence.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_outside_of_a_fenced_transaction() {
    let databases = Databases::start().await;
    let router = databases.router();
    let session: String = router
        .read("m", &[KeyValue::from(1)], |transaction| {
            Box::pin(async move {
                let rows = transaction.query("SHOW default_transaction_read_only", &[]).await?;
                Ok::<_, PostgresError>(rows[0].try_get(0)?)
            })
        })
        .await
        .expect("read");
    assert_eq!(session, "on");
    assert_eq!(execute(&router, 1).await.expect("written"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_failed_is_not_committed_whatever_the_work_says() {
    let databases = Databases::start().await;
    let router = databases.router();
    let key = [KeyValue::from(1)];
    let keys: [&[KeyValue]; 1] = [&key];
    let first = router.read("m", &key, process).await.expect("read");
    for _ in 0..2 {
        // Statements before and after; the second time all are prepared.
        let swallowed = router.write::<_, _, PostgresError>(Keys::new("m", &keys), |transaction| {
            Box::pin(async move {
                insert(transaction).await?;
                drop(transaction.execute(INSERT, &[&13_i32, &"the check"]).await);
                Ok(())
            })
        });
        let error = swallowed.await.expect_err("a statement failed");
        assert!(
            matches!(error, RouterError::Failed { error: PostgresError::StatementFailed, .. }),
            "{error}"
        );
        assert!(!error.may_be_done());
    }
    let unsent =
        router.write::<_, _, PostgresError>(Keys::new("m", &keys), |_| Box::pin(async { Ok(7) })).await;
    assert_eq!(unsent.expect("nothing to do"), 7);
    let error = router.read("m", &key, insert).await.expect_err("a read writes nothing");
    assert!(matches!(error, RouterError::Failed { .. }), "{error}");
    assert_eq!(router.read("m", &key, count).await.expect("read"), 0);
    let last = router.read("m", &key, process).await.expect("read");
    assert_eq!(first, last, "a connection whose transaction was rolled back serves again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publish_waits_for_a_write_that_holds_the_fence() {
    let mut databases = Databases::start().await;
    let router = databases.router();
    write(&router, 1).await.expect("written");
    let (has_written, may_commit) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let slow = {
        let (router, has_written, may_commit) = (router.clone(), has_written.clone(), may_commit.clone());
        async move {
            let key = [KeyValue::from(1)];
            let keys: [&[KeyValue]; 1] = [&key];
            router
                .write::<_, _, PostgresError>(Keys::new("m", &keys), |transaction| {
                    let (has_written, may_commit) = (has_written.clone(), may_commit.clone());
                    Box::pin(async move {
                        insert(transaction).await?;
                        has_written.add_permits(1);
                        may_commit.acquire().await.expect("it is open").forget();
                        Ok(())
                    })
                })
                .await
        }
    };
    let slow = tokio::spawn(slow);
    has_written.acquire().await.expect("it is open").forget();
    databases.change(vec![place(None, "s1")]).await;
    let published = async {
        databases.publish().await;
    };
    tokio::pin!(published);
    tokio::select! {
        () = &mut published => panic!("the publish passed a write that holds the fence"),
        () = tokio::time::sleep(Duration::from_millis(500)) => {}
    }
    may_commit.add_permits(1);
    slow.await.expect("no panic").expect("written");
    published.await;
    write(&router, 1).await.expect("written elsewhere");
    assert_eq!(router.read("m", &[KeyValue::from(5)], count).await.expect("read"), 1);
}

/// Sixteen writers while a range goes to and fro: what was acknowledged is counted in the databases.
#[tokio::test(flavor = "multi_thread")]
async fn writers_lose_nothing_while_a_range_changes_its_shard() {
    let mut databases = Databases::start().await;
    let router = databases.router();
    let written = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..16)
        .map(|number| {
            let (router, written, is_over) = (router.clone(), written.clone(), is_over.clone());
            tokio::spawn(async move {
                while is_over.load(Ordering::Relaxed) == 0 {
                    let done = match number % 2 {
                        0 => write(&router, 1).await,
                        _ => execute(&router, 1).await,
                    };
                    match done {
                        Ok(_) => drop(written.fetch_add(1, Ordering::Relaxed)),
                        Err(RouterError::Refused { .. }) => tokio::task::yield_now().await,
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for shard in ["s1", "s0", "s1", "s0"] {
        tokio::time::sleep(Duration::from_millis(150)).await;
        databases.change(vec![place(None, shard)]).await;
        databases.publish().await;
    }
    is_over.store(1, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("no panic");
    }
    let mut there = 0;
    for key in [1, 5] {
        there += router.read("m", &[KeyValue::from(key)], count).await.expect("read");
    }
    println!("{there} rows, {} reads of the map", router.map().read_count());
    assert_eq!(there as u64, written.load(Ordering::Relaxed));
}

fn all<'t>(transaction: &'t PostgresTransaction<'t>) -> Answer<'t, usize> {
    Box::pin(async move { Ok(transaction.query("SELECT * FROM notes", &[]).await?.len()) })
}

/// A statement that was prepared before a column's type changed failed on its connection for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_whose_table_changed_is_prepared_anew() {
    let databases = Databases::start().await;
    let router = databases.router();
    let key = [KeyValue::from(1)];
    for _ in 0..2 {
        assert_eq!(router.read("m", &key, all).await.expect("read"), 0);
    }
    databases.server.run("s0", "ALTER TABLE notes ALTER COLUMN note TYPE varchar(9)");
    let error = router.read("m", &key, all).await.expect_err("its plan is stale");
    assert!(error.to_string().contains("cached plan"), "{error}");
    assert_eq!(router.read("m", &key, all).await.expect("prepared anew"), 0);
}

/// Counts notes.
struct CountNotes;

impl ShardQuery<PostgresConnection> for CountNotes {
    type Output = i64;
    type Error = PostgresError;

    fn query<'a>(
        &'a self,
        connection: &'a mut PostgresConnection,
        _part: &'a ShardPart,
    ) -> BoxFuture<'a, Result<i64, PostgresError>> {
        Box::pin(async move { Ok(connection.query("SELECT count(*) FROM notes", &[]).await?[0].try_get(0)?) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_shards_that_gave_rows_away_are_not_believed() {
    let mut databases = Databases::start().await;
    let router = databases.router();
    write(&router, 1).await.expect("written");
    let counts = async || {
        let counts = router.fan_out("m", &CountNotes, &FanOutSettings::default()).await.expect("counts");
        counts.answers.into_iter().map(|(_, count)| count).sum::<i64>()
    };
    assert_eq!(counts().await, 1);
    databases.server.run("s0", "DELETE FROM notes");
    databases.server.run("s1", "INSERT INTO notes VALUES (1, 'hello')");
    databases.change(vec![place(None, "s1")]).await;
    databases.publish().await;
    assert_eq!((counts().await, router.map().read_count()), (1, 2));
}
