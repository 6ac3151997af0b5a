//! Shards that are SQLite databases.

use crate::setup::{changes, name, place, set_state};
use base::memory_disk::MemoryDisk;
use base::{BoxFuture, Environment};
use rusqlite::{Connection, Transaction};
use shard_map::{Catalog, Change, KeyValue, Name, State};
use shard_router::{
    CachedMap, FanOutSettings, MapSettings, PoolSettings, Router, RouterError, RouterParts, ShardCredentials,
    ShardPart, ShardQuery, SqliteConnection, SqliteConnector,
};
use shard_store::{CatalogHome, HomeError, LocalStore, LocalStores, MemoryRecords, SqliteFile, SqliteLocal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Files {
    env: Environment,
    home: CatalogHome,
    catalog: Catalog,
    folder: TempDir,
}

impl Files {
    pub(crate) async fn start() -> Self {
        let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
        let records = Arc::new(MemoryRecords::new("the home", env.random.clone()));
        let home = CatalogHome::new(records, env.clock.clone(), env.random.clone());
        let folder = tempfile::tempdir().expect("a folder");
        let catalog = home.create(&name("catalog")).await.expect("a catalog");
        let mut files = Files { env, home, catalog, folder };
        let paths = ["s0", "s1", "s2"].map(|shard| files.path(shard).display().to_string());
        files.change(changes([0, 1, 2].map(|index| paths[index].as_str()))).await;
        for shard in ["s0", "s1", "s2"] {
            let opened = Connection::open(files.path(shard)).expect("a database");
            opened.execute_batch("CREATE TABLE notes (key INTEGER, note TEXT)").expect("a table");
        }
        files
    }

    fn path(&self, shard: &str) -> PathBuf {
        self.folder.path().join(format!("{shard}.db"))
    }

    pub(crate) async fn change(&mut self, changes: Vec<Change>) {
        let changed = self.home.change::<HomeError>(&self.catalog, "", |_| Ok(changes.clone())).await;
        self.catalog = changed.expect("a change").catalog;
        let store = |shard: &Name| {
            let thread = self.env.spawner.start_thread("test").expect("a thread");
            let local = SqliteLocal::new(SqliteFile::new(&self.path(shard.as_str()), thread));
            (shard.clone(), Arc::new(local) as Arc<dyn LocalStore>)
        };
        let stores: LocalStores = self.catalog.shards().map(|shard| store(&shard.name)).collect();
        let published = self.home.publish(&self.catalog, &stores).await.expect("published");
        assert!(published.is_complete(), "{published:?}");
    }

    pub(crate) fn router(&self) -> Router<SqliteConnector> {
        self.router_with(PoolSettings::default())
    }

    fn router_with(&self, pool: PoolSettings) -> Router<SqliteConnector> {
        let (clock, spawner) = (self.env.clock.clone(), self.env.spawner.clone());
        let map = CachedMap::new(self.home.clone(), clock.clone(), spawner.clone(), MapSettings::default());
        Router::new(RouterParts {
            map,
            connector: Arc::new(SqliteConnector::new(spawner.clone())),
            credentials: Arc::new(ShardCredentials::default()),
            clock,
            spawner,
            pool,
        })
    }

    pub(crate) fn run(&self, shard: &str, statements: &str) {
        let opened = Connection::open(self.path(shard)).expect("a database");
        opened.execute_batch(statements).expect("statements");
    }

    fn count(&self, shard: &str) -> i64 {
        let opened = Connection::open(self.path(shard)).expect("a database");
        opened.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).expect("a count")
    }
}

fn insert(transaction: &Transaction<'_>) -> Result<usize, rusqlite::Error> {
    transaction.execute("INSERT INTO notes VALUES (1, 'hello')", [])
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_and_reads_pass_the_fence_of_a_sqlite_shard() {
    let mut files = Files::start().await;
    let router = files.router();
    let key = [KeyValue::from(1)];
    assert_eq!(router.write("m", &key, insert).await.expect("written"), 1);
    // The map moves on; the client is refused, reads it and writes to the right shard.
    files.change(vec![place(None, "s1")]).await;
    router.write("m", &key, insert).await.expect("written");
    assert_eq!((files.count("s0"), files.count("s1"), router.map().read_count()), (1, 1, 2));
    assert_eq!(router.read("m", &key, count).await.expect("read"), 1);
    let error = router.read("m", &key, insert).await.expect_err("a read writes nothing");
    assert!(matches!(error, RouterError::Failed { .. }), "{error}");
    let failed = |transaction: &Transaction<'_>| {
        insert(transaction)?;
        transaction.execute("INSERT INTO nothing VALUES (1)", [])
    };
    let error = router.write("m", &key, failed).await.expect_err("there is no such table");
    assert!(!error.may_be_done());
    files.change(vec![set_state(None, State::ReadOnly)]).await;
    let error = router.write("m", &key, insert).await.expect_err("read-only");
    assert!(matches!(error, RouterError::Refused { .. }), "{error}");
    assert_eq!(router.read("m", &key, count).await.expect("reads pass"), 1);
    assert_eq!(files.count("s1"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_there_is_not_made() {
    let files = Files::start().await;
    std::fs::remove_file(files.path("s0")).expect("removed");
    let error = files.router().write("m", &[KeyValue::from(1)], insert).await.expect_err("it is gone");
    assert!(matches!(error, RouterError::Pool(_)), "{error}");
    assert!(!files.path("s0").exists());
    // A database without a copy lets nothing pass.
    Connection::open(files.path("s0")).expect("a database");
    let error = files.router().write("m", &[KeyValue::from(1)], insert).await.expect_err("no copy");
    assert!(matches!(error, RouterError::Refused { shard: Some(_), .. }), "{error}");
}

/// A statement that rolls back ends the transaction: what followed it was committed without a fence.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_after_a_statement_ended_the_transaction() {
    let files = Files::start().await;
    files.run(
        "s0",
        "CREATE TABLE one (key INTEGER PRIMARY KEY); INSERT INTO one VALUES (1);
        CREATE TABLE two (key INTEGER);
        CREATE TRIGGER two_ends BEFORE INSERT ON two BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
    );
    let (router, key) = (files.router(), [KeyValue::from(1)]);
    let statements = [
        "INSERT OR ROLLBACK INTO one VALUES (1)",
        "INSERT INTO two VALUES (1)",
        "ROLLBACK",
        "COMMIT",
        "ROLLBACK; BEGIN",
    ];
    for ending in statements {
        let swallowed = move |transaction: &Transaction<'_>| {
            insert(transaction)?;
            drop(transaction.execute_batch(ending));
            drop(insert(transaction));
            Ok::<_, rusqlite::Error>(())
        };
        let error = router.write("m", &key, swallowed).await.expect_err(ending);
        assert!(matches!(error, RouterError::Failed { .. }) && !error.may_be_done(), "{ending}: {error}");
        assert_eq!(files.count("s0"), 0, "{ending}");
    }
    // A savepoint is a part of the transaction, and the connections serve again.
    let savepoint = |transaction: &Transaction<'_>| {
        insert(transaction)?;
        transaction.execute_batch("SAVEPOINT s; DELETE FROM notes; ROLLBACK TO s; RELEASE s")
    };
    router.write("m", &key, savepoint).await.expect("written");
    assert_eq!(files.count("s0"), 1);
}

/// Each operation that its caller gave up kept a thread beside those of the pool.
#[tokio::test(flavor = "multi_thread")]
async fn operations_that_were_given_up_count_as_connections() {
    let files = Files::start().await;
    let wait_for_max = Duration::from_millis(200);
    let router =
        files.router_with(PoolSettings { connections_max: 2, wait_for_max, ..PoolSettings::default() });
    let (running, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for _ in 0..4 {
        let (running, is_over) = (running.clone(), is_over.clone());
        let slow = move |_: &Transaction<'_>| {
            running.fetch_add(1, Ordering::SeqCst);
            while is_over.load(Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok::<_, rusqlite::Error>(())
        };
        let key = [KeyValue::from(1)];
        tokio::select! {
            done = router.read("m", &key, slow) => assert!(matches!(done, Err(RouterError::Pool(_))), "{done:?}"),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
    assert_eq!(running.load(Ordering::SeqCst), 2);
    let error = router.read("m", &[KeyValue::from(1)], count).await.expect_err("both are busy");
    assert!(error.to_string().contains("no connection was free"), "{error}");
    is_over.store(1, Ordering::SeqCst);
    assert_eq!(router.read("m", &[KeyValue::from(1)], count).await.expect("they have ended"), 0);
}

fn count(transaction: &Transaction<'_>) -> Result<i64, rusqlite::Error> {
    transaction.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))
}

/// Counts notes.
struct CountNotes;

impl ShardQuery<SqliteConnection> for CountNotes {
    type Output = i64;
    type Error = rusqlite::Error;

    fn query<'a>(
        &'a self,
        connection: &'a mut SqliteConnection,
        _part: &'a ShardPart,
    ) -> BoxFuture<'a, Result<i64, rusqlite::Error>> {
        Box::pin(connection.read(count))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_shards_that_gave_rows_away_are_not_believed() {
    let mut files = Files::start().await;
    let router = files.router();
    router.write("m", &[KeyValue::from(1)], insert).await.expect("written");
    let counts = async || {
        let counts = router.fan_out("m", &CountNotes, &FanOutSettings::default()).await.expect("counts");
        counts.answers.into_iter().map(|(_, count)| count).sum::<i64>()
    };
    assert_eq!(counts().await, 1);
    files.run("s0", "DELETE FROM notes");
    files.run("s1", "INSERT INTO notes VALUES (1, 'hello')");
    files.change(vec![place(None, "s1")]).await;
    assert_eq!((counts().await, router.map().read_count()), (1, 2));
}
