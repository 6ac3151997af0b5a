//! The shards: Postgres databases, SQLite files, and accounts.

use crate::postgres_server::PostgresServer;
use crate::served_account::ServedAccount;
use crate::settings::SIGNED_FOR;
use base::connector::SystemConnector;
use base::{Environment, TaskThread};
use shard_backend::{Backend, PostgresBackend, Schema, SqliteBackend, TableBackend, TablePlace};
use shard_store::{
    LocalStore, PostgresDatabase, PostgresLocal, PostgresSurroundings, SqliteFile, SqliteLocal,
};
use std::fmt;
use std::sync::Arc;
use storage_client::{
    AccountKey, DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME, Proxies, Settings, Surroundings,
};
use tempfile::TempDir;

/// The table.
pub(crate) const TABLE: &str = "notes";
const SCHEMA: &str = "map = \"m\"\n[sharded.notes]\nkey = \"tenant\"\nprimary_key = [\"tenant\", \"number\"]\n\
     columns = { tenant = \"int64\", number = \"int32\", text = \"text\" }\n";
const POSTGRES_TABLE: &str = "CREATE TABLE notes (tenant bigint NOT NULL, number integer NOT NULL, \
     text text NOT NULL, PRIMARY KEY (tenant, number))";
const SQLITE_TABLE: &str = "PRAGMA journal_mode = WAL; CREATE TABLE notes (tenant INTEGER NOT NULL, \
     number INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (tenant, number)) STRICT, WITHOUT ROWID";
/// The user of the Postgres server, which trusts it.
pub(crate) const POSTGRES_USER: &str = "shard";

/// A kind of shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Postgres,
    Sqlite,
    Account,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Postgres, Kind::Sqlite, Kind::Account];
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Kind::Postgres => "postgres",
            Kind::Sqlite => "sqlite",
            Kind::Account => "account",
        })
    }
}

/// A shard.
#[derive(Clone)]
pub(crate) struct ShardPlace {
    pub(crate) kind: Kind,
    pub(crate) location: String,
    pub(crate) local: Arc<dyn LocalStore>,
    pub(crate) backend: Arc<dyn Backend>,
}

/// What the shards of a trial are on; they end with it.
pub(crate) struct Places {
    env: Environment,
    postgres: Option<PostgresServer>,
    folder: TempDir,
    pub(crate) schema: Arc<Schema>,
}

impl Places {
    /// With a Postgres server, if one of the kinds needs it.
    pub(crate) fn start(env: &Environment, kinds: &[Kind]) -> Self {
        let postgres = kinds.contains(&Kind::Postgres).then(PostgresServer::start);
        let folder = tempfile::tempdir().expect("a folder");
        let schema = Arc::new(Schema::parse(SCHEMA).expect("a schema"));
        Places { env: env.clone(), postgres, folder, schema }
    }

    /// A new shard with an empty table.
    pub(crate) async fn shard(&self, kind: Kind, name: &str) -> ShardPlace {
        match kind {
            Kind::Postgres => self.database(name),
            Kind::Sqlite => self.file(name),
            Kind::Account => self.account().await,
        }
    }

    fn database(&self, name: &str) -> ShardPlace {
        let server = self.postgres.as_ref().expect("a kind is Postgres");
        server.create_database(name);
        server.run(name, POSTGRES_TABLE);
        // Reads and writes of a move go side by side: a connection for each.
        let database = || {
            let surroundings = PostgresSurroundings {
                connector: Arc::new(SystemConnector),
                spawner: self.env.spawner.clone(),
                clock: self.env.clock.clone(),
            };
            PostgresDatabase::new(server.config(name), surroundings)
        };
        ShardPlace {
            kind: Kind::Postgres,
            location: format!("postgres://127.0.0.1:{}/{name}", server.config(name).get_ports()[0]),
            local: Arc::new(PostgresLocal::new(database())),
            backend: Arc::new(PostgresBackend::new(database())),
        }
    }

    fn file(&self, name: &str) -> ShardPlace {
        let path = self.folder.path().join(format!("{name}.db"));
        let connection = rusqlite::Connection::open(&path).expect("a file");
        connection.execute_batch(SQLITE_TABLE).expect("a table");
        ShardPlace {
            kind: Kind::Sqlite,
            location: format!("sqlite:{}", path.display()),
            local: Arc::new(SqliteLocal::new(SqliteFile::new(&path, self.thread("SQLite copy")))),
            backend: Arc::new(SqliteBackend::new(SqliteFile::new(&path, self.thread("SQLite rows")))),
        }
    }

    fn thread(&self, name: &'static str) -> Arc<dyn TaskThread> {
        self.env.spawner.start_thread(name).expect("a thread")
    }

    async fn account(&self) -> ShardPlace {
        let location = ServedAccount::serve().await.location();
        let at = TablePlace {
            account: DEVELOPMENT_ACCOUNT_NAME.to_owned(),
            endpoint: location.clone(),
            key: AccountKey::from_base64(DEVELOPMENT_ACCOUNT_KEY).expect("a key"),
            copies: "larimarshard".to_owned(),
        };
        let backend = TableBackend::new(at, self.schema.clone(), client_settings(), surroundings(&self.env));
        let backend = backend.expect("an address").signed_for(SIGNED_FOR);
        backend.create_tables().await.expect("tables");
        ShardPlace { kind: Kind::Account, location, local: backend.local(), backend: Arc::new(backend) }
    }
}

/// How accounts are spoken to.
pub(crate) fn client_settings() -> Settings {
    Settings { proxies: Proxies::none(), ..Settings::default() }
}

pub(crate) fn surroundings(env: &Environment) -> Surroundings {
    Surroundings {
        clock: env.clock.clone(),
        random: env.random.clone(),
        spawner: env.spawner.clone(),
        connector: Arc::new(SystemConnector),
    }
}

/// The statements of clients, the same in both databases but for their parameters.
pub(crate) fn put_statement(parameter: char) -> String {
    let [tenant, number, text] = [1, 2, 3].map(|number| format!("{parameter}{number}"));
    format!(
        "INSERT INTO {TABLE} (tenant, number, text) VALUES ({tenant}, {number}, {text}) \
         ON CONFLICT (tenant, number) DO UPDATE SET text = EXCLUDED.text"
    )
}

pub(crate) fn delete_statement(parameter: char) -> String {
    format!("DELETE FROM {TABLE} WHERE tenant = {parameter}1 AND number = {parameter}2")
}
