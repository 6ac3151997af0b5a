//! The places: each gives handles on records and copies by name, as different processes have them.

use crate::postgres_server::PostgresServer;
use crate::served_account::ServedAccount;
use base::file_lock::SystemFileLock;
use base::system::{SystemClock, SystemDisk, SystemRandom, TokioSpawner};
use base::{Clock, Random, Spawner, TaskThread};
use parking_lot::Mutex;
use shard_store::{
    CatalogHome, FilePlace, FileRecords, LocalStore, MemoryLocal, MemoryRecords, PostgresDatabase,
    PostgresLocal, PostgresRecords, PostgresSurroundings, Records, SqliteFile, SqliteLocal, SqliteRecords,
    TableLocal, TableRecords,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;

/// A kind of place.
pub(crate) trait Place: Sync {
    /// A new handle on the records of a name.
    fn records(&self, name: &str) -> Arc<dyn Records>;
    /// A new handle on the copy of a name; a place that is no shard has it in memory.
    fn local(&self, name: &str) -> Arc<dyn LocalStore>;
    /// A new handle on the home of a name.
    fn home(&self, name: &str) -> CatalogHome {
        CatalogHome::new(self.records(name), clock(), random())
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

pub(crate) fn random() -> Arc<dyn Random> {
    Arc::new(SystemRandom::new())
}

pub(crate) fn thread() -> Arc<dyn TaskThread> {
    TokioSpawner::current().start_thread("test").expect("a thread")
}

#[derive(Default)]
pub(crate) struct Memory {
    records: Mutex<BTreeMap<String, Arc<MemoryRecords>>>,
    locals: Mutex<BTreeMap<String, Arc<MemoryLocal>>>,
}

impl Place for Memory {
    fn records(&self, name: &str) -> Arc<dyn Records> {
        let mut all = self.records.lock();
        all.entry(name.to_owned()).or_insert_with(|| Arc::new(MemoryRecords::new(name, random()))).clone()
    }

    fn local(&self, name: &str) -> Arc<dyn LocalStore> {
        let mut all = self.locals.lock();
        all.entry(name.to_owned()).or_insert_with(|| Arc::new(MemoryLocal::new(name, random()))).clone()
    }
}

pub(crate) struct File {
    folder: TempDir,
    memory: Memory,
}

impl Default for File {
    fn default() -> Self {
        File { folder: tempfile::tempdir().expect("a folder"), memory: Memory::default() }
    }
}

impl Place for File {
    fn records(&self, name: &str) -> Arc<dyn Records> {
        let path = self.folder.path();
        Arc::new(FileRecords::new(FilePlace {
            disk: Arc::new(SystemDisk::new(path)),
            name: name.to_owned(),
            lock: Arc::new(SystemFileLock::new(&path.join(format!("{name}.lock")))),
            clock: clock(),
            thread: thread(),
            shown: path.join(name).display().to_string(),
        }))
    }

    fn local(&self, name: &str) -> Arc<dyn LocalStore> {
        self.memory.local(name)
    }
}

pub(crate) struct Sqlite {
    folder: TempDir,
}

impl Default for Sqlite {
    fn default() -> Self {
        Sqlite { folder: tempfile::tempdir().expect("a folder") }
    }
}

impl Sqlite {
    pub(crate) fn file(&self, name: &str) -> SqliteFile {
        SqliteFile::new(&self.folder.path().join(format!("{name}.db")), thread())
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(format!("{name}.db"))
    }
}

impl Place for Sqlite {
    fn records(&self, name: &str) -> Arc<dyn Records> {
        Arc::new(SqliteRecords::new(self.file(name)))
    }

    fn local(&self, name: &str) -> Arc<dyn LocalStore> {
        Arc::new(SqliteLocal::new(self.file(name)))
    }
}

pub(crate) struct Table {
    account: ServedAccount,
}

impl Table {
    pub(crate) async fn serve() -> Self {
        Table { account: ServedAccount::serve().await }
    }
}

impl Place for Table {
    fn records(&self, name: &str) -> Arc<dyn Records> {
        Arc::new(TableRecords::new("the test's account", self.account.client().table("shardmaps"), name))
    }

    fn local(&self, name: &str) -> Arc<dyn LocalStore> {
        let table = self.account.client().table(format!("copy{}", name.replace('-', "")));
        Arc::new(TableLocal::new("the test's account", table, clock(), random()))
    }
}

pub(crate) struct Postgres {
    server: PostgresServer,
}

impl Postgres {
    pub(crate) fn start() -> Self {
        Postgres { server: PostgresServer::start() }
    }

    /// The database of a name, made if it is missing.
    pub(crate) fn database(&self, name: &str) -> PostgresDatabase {
        self.server.create_database(name);
        self.database_as_is(name)
    }

    pub(crate) fn database_as_is(&self, name: &str) -> PostgresDatabase {
        PostgresDatabase::new(self.server.config(name), surroundings())
    }

    /// The database of a name for a user that may read all tables that are there, and nothing else.
    pub(crate) fn database_for_reading(&self, name: &str) -> PostgresDatabase {
        self.server.run(name, "CREATE USER reader");
        self.server.run(name, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
        let mut config = self.server.config(name);
        config.user("reader");
        PostgresDatabase::new(config, surroundings())
    }

    /// Ends all connections to the database of a name.
    pub(crate) fn end_connections(&self, name: &str) {
        let end =
            format!("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'");
        self.server.run("postgres", &end);
    }

    pub(crate) fn config(&self, name: &str) -> tokio_postgres::Config {
        self.server.config(name)
    }
}

fn surroundings() -> PostgresSurroundings {
    PostgresSurroundings {
        connector: Arc::new(base::connector::SystemConnector),
        spawner: Arc::new(TokioSpawner::current()),
        clock: clock(),
    }
}

impl Place for Postgres {
    fn records(&self, name: &str) -> Arc<dyn Records> {
        Arc::new(PostgresRecords::new(self.database(name)))
    }

    fn local(&self, name: &str) -> Arc<dyn LocalStore> {
        Arc::new(PostgresLocal::new(self.database(name)))
    }
}
