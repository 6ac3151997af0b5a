//! Two databases of one Postgres server, and a map of two ranges on them.

use crate::Outcome;
use crate::postgres_server::PostgresServer;
use base::Environment;
use base::connector::SystemConnector;
use base::memory_disk::MemoryDisk;
use shard_backend::{Backend, PostgresBackend, Schema};
use shard_map::{Change, KeyKind, KeyType, MapBuilder, MappingId, Name, Placement, Shard};
use shard_router::{
    CachedMap, MapSettings, PoolSettings, PostgresConnector, Router, RouterParts, ShardCredentials,
};
use shard_store::{
    CatalogHome, HomeError, LocalStore, LocalStores, MemoryRecords, PostgresDatabase, PostgresLocal,
    PostgresSurroundings, Records,
};
use std::sync::Arc;
use tokio_postgres::NoTls;

pub(crate) const TABLE: &str = "notes";
/// Tenants below this are on the first shard.
pub(crate) const SECOND_RANGE: i64 = 1 << 40;
pub(crate) const SHARDS: [&str; 2] = ["first", "second"];
const SCHEMA: &str = "map = \"m\"\n[sharded.notes]\nkey = \"tenant\"\nprimary_key = [\"tenant\", \"number\"]\n\
     columns = { tenant = \"int64\", number = \"int32\", text = \"text\" }\n";
const CREATE: &str = "CREATE TABLE notes (tenant bigint NOT NULL, number integer NOT NULL, \
     text text NOT NULL, PRIMARY KEY (tenant, number))";

pub(crate) struct Databases {
    pub(crate) env: Environment,
    pub(crate) records: Arc<dyn Records>,
    pub(crate) schema: Arc<Schema>,
    server: PostgresServer,
}

impl Databases {
    pub(crate) async fn start() -> Outcome<Self> {
        let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
        let server = PostgresServer::start_durable();
        let records: Arc<dyn Records> = Arc::new(MemoryRecords::new("the home", env.random.clone()));
        let schema = Arc::new(Schema::parse(SCHEMA)?);
        let databases = Databases { env, records, schema, server };
        let home = databases.home();
        let empty = home.create(&Name::parse("bench")?).await?;
        let mut map = MapBuilder::new(Name::parse("m")?, KeyType::new([KeyKind::Int64])?);
        map.range(&[], Some(&[SECOND_RANGE.into()]), Placement::on(Name::parse(SHARDS[0])?))?;
        map.range(&[SECOND_RANGE.into()], None, Placement::on(Name::parse(SHARDS[1])?))?;
        let mut changes = Vec::new();
        for shard in SHARDS {
            databases.server.create_database(shard);
            databases.server.run(shard, CREATE);
            let port = databases.server.config(shard).get_ports()[0];
            let location = format!("postgres://127.0.0.1:{port}/{shard}");
            changes.push(Change::AddShard(Shard::new(Name::parse(shard)?, location)));
        }
        changes.push(Change::AddMap(map.build()?));
        let catalog = home.change::<HomeError>(&empty, "start", |_| Ok(changes.clone())).await?.catalog;
        let published = home.publish(&catalog, &databases.locals()?).await?;
        match published.is_complete() {
            true => Ok(databases),
            false => Err(format!("the map is not published: {published:?}").into()),
        }
    }

    /// The range that begins at the first tenant.
    pub(crate) fn first_range() -> Outcome<MappingId> {
        Ok(MappingId::Range(KeyType::new([KeyKind::Int64])?.bound(&[])?))
    }

    pub(crate) fn home(&self) -> CatalogHome {
        CatalogHome::new(self.records.clone(), self.env.clock.clone(), self.env.random.clone())
    }

    /// A connection for operations that go one after the other.
    fn database(&self, shard: &str) -> PostgresDatabase {
        let surroundings = PostgresSurroundings {
            connector: Arc::new(SystemConnector),
            spawner: self.env.spawner.clone(),
            clock: self.env.clock.clone(),
        };
        PostgresDatabase::new(self.server.config(shard), surroundings)
    }

    pub(crate) fn locals(&self) -> Outcome<LocalStores> {
        let local = |shard: &&str| -> Outcome<_> {
            let local: Arc<dyn LocalStore> = Arc::new(PostgresLocal::new(self.database(shard)));
            Ok((Name::parse(shard)?, local))
        };
        SHARDS.iter().map(local).collect()
    }

    pub(crate) fn backend(&self, shard: &str) -> Arc<dyn Backend> {
        Arc::new(PostgresBackend::new(self.database(shard)))
    }

    pub(crate) fn router(&self) -> Router<PostgresConnector> {
        let (clock, spawner) = (self.env.clock.clone(), self.env.spawner.clone());
        Router::new(RouterParts {
            map: CachedMap::new(self.home(), clock.clone(), spawner.clone(), MapSettings::default()),
            connector: Arc::new(PostgresConnector::new(Arc::new(SystemConnector), spawner.clone())),
            credentials: Arc::new(ShardCredentials { user: "shard".to_owned(), secret: String::new() }),
            clock,
            spawner,
            pool: PoolSettings::default(),
        })
    }

    /// A connection that knows of no map.
    pub(crate) async fn plain(&self, shard: &str) -> Outcome<tokio_postgres::Client> {
        let config = self.server.config(shard);
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", config.get_ports()[0])).await?;
        stream.set_nodelay(true)?;
        let (client, connection) = config.connect_raw(stream, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Runs a statement by hand.
    pub(crate) fn run(&self, shard: &str, statement: &str) {
        self.server.run(shard, statement);
    }
}
