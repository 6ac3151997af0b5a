//! Shards that are SQLite databases.

use crate::setup::{changes, name, place, set_state};
use base::Environment;
use base::memory_disk::MemoryDisk;
use rusqlite::{Connection, Transaction};
use shard_map::{Catalog, Change, KeyValue, Name, State};
use shard_router::{
    CachedMap, MapSettings, PoolSettings, Router, RouterError, RouterParts, ShardCredentials, SqliteConnector,
};
use shard_store::{CatalogHome, HomeError, LocalStore, LocalStores, MemoryRecords, SqliteFile, SqliteLocal};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

struct Files {
    env: Environment,
    home: CatalogHome,
    catalog: Catalog,
    folder: TempDir,
}

impl Files {
    async fn start() -> Self {
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

    async fn change(&mut self, changes: Vec<Change>) {
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

    fn router(&self) -> Router<SqliteConnector> {
        let (clock, spawner) = (self.env.clock.clone(), self.env.spawner.clone());
        let map = CachedMap::new(self.home.clone(), clock.clone(), spawner.clone(), MapSettings::default());
        Router::new(RouterParts {
            map,
            connector: Arc::new(SqliteConnector::new(spawner.clone())),
            credentials: Arc::new(ShardCredentials::default()),
            clock,
            spawner,
            pool: PoolSettings::default(),
        })
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
    let count = |transaction: &Transaction<'_>| {
        transaction.query_row("SELECT count(*) FROM notes", [], |row| row.get::<_, i64>(0))
    };
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
