//! A backend with the local copy that its fence is of, the model beside it, and the rows of the tests.

use crate::postgres_server::PostgresServer;
use base::Ticks;
use base::connector::SystemConnector;
use base::date_time::TICKS_MAX;
use base::system::{SystemClock, SystemRandom, TokioSpawner};
use base::{Random, Spawner};
use shard_backend::{
    Backend, BatchBounds, Capabilities, MemoryBackend, PostgresBackend, Row, RowKey, Schema, Shardlet,
    SqliteBackend, TableSchema, Value,
};
use shard_map::{
    Catalog, Change, Hashed, KeyHash, KeyKind, KeyType, KeyValue, MapBuilder, MapChange, MappingId, Name,
    Placement, Selection, Shard, ShardMap, State,
};
use shard_store::{
    LocalCopy, LocalStore, MemoryLocal, PostgresDatabase, PostgresLocal, PostgresSurroundings, SqliteFile,
    SqliteLocal,
};
use std::sync::Arc;
use tempfile::TempDir;

const SCHEMA: &str = r#"
map = "m"
[sharded.all_kinds]
key = ["a", "b"]
primary_key = ["n", "a", "b", "at", "g", "big"]
[sharded.all_kinds.columns]
a = "text"
b = "binary"
n = "int32"
at = "date-time"
g = "guid"
big = "int64"
v_bool = "bool null"
v_float = "float64 null"
v_text = "text null"
v_binary = "binary null"
v_at = "date-time null"
[sharded."only keys"]
key = ["a", "b"]
primary_key = ["a", "b"]
columns = { a = "text", b = "binary" }
[reference.countries]
primary_key = "code"
columns = { code = "text", name = "text" }
"#;

const SQLITE_TABLES: &str = r#"
    CREATE TABLE all_kinds (a TEXT NOT NULL, b BLOB NOT NULL, n INTEGER NOT NULL, at TEXT NOT NULL,
        g BLOB NOT NULL, big INTEGER NOT NULL, v_bool BOOLEAN, v_float REAL, v_text TEXT, v_binary BLOB,
        v_at TEXT, PRIMARY KEY (a, b, n, at, g, big)) WITHOUT ROWID;
    CREATE TABLE "only keys" (a TEXT NOT NULL, b BLOB NOT NULL, PRIMARY KEY (b, a));
    CREATE TABLE countries (code TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL);
"#;

const POSTGRES_TABLES: &str = r#"
    CREATE TABLE all_kinds (a text COLLATE "C", b bytea, n integer, at timestamptz, g uuid, big bigint,
        v_bool boolean, v_float double precision, v_text text, v_binary bytea, v_at timestamptz,
        PRIMARY KEY (a, b, n, at, g, big));
    CREATE TABLE "only keys" (a text COLLATE "C", b bytea, PRIMARY KEY (b, a));
    CREATE TABLE countries (code varchar(10) COLLATE "C" PRIMARY KEY, name text NOT NULL);
"#;

/// What a backend lives in.
pub(crate) enum Home {
    Memory,
    Sqlite(TempDir),
    Postgres(PostgresServer),
}

pub(crate) struct Stage {
    pub(crate) home: Home,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) local: Arc<dyn LocalStore>,
    pub(crate) model: MemoryBackend,
    model_local: Arc<MemoryLocal>,
    pub(crate) catalog: Catalog,
    pub(crate) schema: Schema,
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn random() -> Arc<dyn Random> {
    Arc::new(SystemRandom::new())
}

pub(crate) fn key(a: &str, b: &[u8]) -> Vec<KeyValue> {
    vec![KeyValue::Text(a.to_owned()), KeyValue::Binary(b.to_vec())]
}

fn database(server: &PostgresServer) -> PostgresDatabase {
    let surroundings = PostgresSurroundings {
        connector: Arc::new(SystemConnector),
        spawner: Arc::new(TokioSpawner::current()),
        clock: Arc::new(SystemClock::new()),
    };
    PostgresDatabase::new(server.config("shard"), surroundings)
}

/// Pins, two of them in a range, over ranges, over four virtual shards.
fn catalog() -> Catalog {
    let key_type = KeyType::new([KeyKind::Text, KeyKind::Binary]).expect("a type");
    let mut map = MapBuilder::new(name("m"), key_type);
    let here = || Placement::on(name("here"));
    let text = |text: &str| [KeyValue::Text(text.to_owned())];
    map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 2, count: 4 }).expect("a hash");
    map.place(0, 3, here()).expect("virtual shards");
    map.range(&text("b"), Some(&text("c\0d")), here()).expect("a range");
    map.range(&key("d", &[0]), Some(&key("d", &[1])), here()).expect("a range");
    for (a, b) in [("ab", &[0, 0][..]), ("b", &[0]), ("b", &[]), ("é", &[255]), ("", &[]), ("n\0", &[])] {
        map.pin(&key(a, b), here()).expect("a pin");
    }
    let changes =
        [Change::AddShard(Shard::new(name("here"), "at here")), Change::AddMap(map.build().expect("a map"))];
    Catalog::new(name("app"), [7; 16]).apply(&changes).expect("changes").catalog
}

impl Stage {
    async fn new(home: Home, backend: Option<Arc<dyn Backend>>, local: Option<Arc<dyn LocalStore>>) -> Self {
        let schema = Schema::parse(SCHEMA).expect("a schema");
        let memory = |place: &str| {
            let local = Arc::new(MemoryLocal::new(place, random()));
            let backend = MemoryBackend::new(place, Capabilities::SQLITE, local.clone(), random());
            backend.create_tables(&schema);
            (backend, local)
        };
        let (model, model_local) = memory("the model");
        let (other, other_local) = memory("memory");
        let stage = Stage {
            home,
            backend: backend.unwrap_or_else(|| Arc::new(other)),
            local: local.unwrap_or(other_local),
            model,
            model_local,
            catalog: catalog(),
            schema,
        };
        stage.publish().await;
        stage
    }

    pub(crate) async fn memory() -> Self {
        Stage::new(Home::Memory, None, None).await
    }

    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let thread = TokioSpawner::current().start_thread("test").expect("a thread");
        let file = SqliteFile::new(&folder.path().join("shard.db"), thread);
        let home = Home::Sqlite(folder);
        home.run(SQLITE_TABLES);
        let backend = Arc::new(SqliteBackend::new(file.clone()));
        Stage::new(home, Some(backend), Some(Arc::new(SqliteLocal::new(file)))).await
    }

    pub(crate) async fn postgres() -> Self {
        let server = PostgresServer::start();
        server.create_database("shard");
        server.run("shard", POSTGRES_TABLES);
        let backend = Arc::new(PostgresBackend::new(database(&server)));
        let local = Arc::new(PostgresLocal::new(database(&server)));
        Stage::new(Home::Postgres(server), Some(backend), Some(local)).await
    }

    /// The backend of another process.
    pub(crate) fn second(&self) -> Arc<dyn Backend> {
        match &self.home {
            Home::Postgres(server) => Arc::new(PostgresBackend::new(database(server))),
            _ => panic!("only Postgres has one"),
        }
    }

    pub(crate) async fn publish(&self) {
        let copy = LocalCopy::of(&self.catalog, "here");
        for local in [self.local.as_ref(), self.model_local.as_ref()] {
            let there = local.read().await.expect("an answer").map(|stored| stored.revision);
            local.replace(there.as_ref(), copy.as_ref()).await.expect("an answer");
        }
    }

    /// The pin of a key gets this state.
    pub(crate) async fn set(&mut self, pin: &[KeyValue], state: State) {
        let mappings = Selection::Pin(pin.to_vec());
        let change = Change::Map(name("m"), MapChange::SetState { mappings, state });
        self.catalog = self.catalog.apply(&[change]).expect("a change").catalog;
        self.publish().await;
    }

    pub(crate) fn map(&self) -> Arc<ShardMap> {
        self.catalog.map("m").expect("the map").clone()
    }

    pub(crate) fn mappings(&self) -> Vec<(MappingId, shard_map::Epoch)> {
        self.map().mappings().map(|(id, placement)| (id, placement.since)).collect()
    }

    pub(crate) fn shardlet(&self, mapping: &MappingId) -> Shardlet {
        Shardlet::new(self.map(), mapping.clone()).expect("a shardlet")
    }

    pub(crate) fn table(&self, table: &str) -> &TableSchema {
        self.schema.table(table).expect("the table")
    }

    /// All rows of a scan in batches.
    pub(crate) async fn scan(
        &self,
        backend: &dyn Backend,
        table: &str,
        shardlet: &Shardlet,
        bounds: BatchBounds,
    ) -> Vec<Row> {
        let (mut rows, mut after): (Vec<Row>, Option<RowKey>) = (Vec::new(), None);
        loop {
            let batch =
                backend.scan(self.table(table), shardlet, after.as_ref(), bounds).await.expect("a batch");
            assert!(batch.rows.len() <= bounds.rows_max);
            rows.extend(batch.rows);
            assert!(batch.next > after || batch.next.is_none(), "a scan must go on: {after:?}");
            after = batch.next;
            if after.is_none() {
                return rows;
            }
        }
    }

    /// Rows of all kinds of values that the backend can store, in no order.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let texts = ["", "a", "a\u{1}", "ab", "b", "bé", "c", "d", "e\u{301}", "é", "z\u{10FFFF}", "Z", "n"];
        let binaries: [&[u8]; 8] = [&[], &[0], &[0, 0], &[0, 1], &[1], &[254], &[255], &[255, 0]];
        let mut rows = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            for (step, binary) in binaries.iter().enumerate() {
                for nth in 0..1 + (at + step) % 3 {
                    rows.push(self.row(text, binary, at + 3 * step + 7 * nth));
                }
            }
        }
        rows
    }

    /// A row whose other values a number chooses.
    pub(crate) fn row(&self, a: &str, b: &[u8], number: usize) -> Row {
        let is_sqlite = matches!(self.home, Home::Sqlite(_));
        let no_number = if is_sqlite { 0.1 } else { f64::NAN };
        // The last instant in whole microseconds.
        let instants =
            [0, TICKS_MAX.0 - 9, 125_911_584_000_000_000, 125_911_583_999_999_990, 133_000_000_000_000_010];
        let floats = [no_number, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE, f64::MAX, 3.0];
        let texts = ["", "ü\n", "'\"\\", "NULL", "\u{1F600}"];
        let of =
            |one_in: usize, value: Value| if number.is_multiple_of(one_in) { Value::Null } else { value };
        let values = [
            ("a", a.into()),
            ("b", Value::Binary(b.to_vec())),
            ("n", Value::Int32([i32::MIN, -1, 0, 1, i32::MAX][number % 5])),
            ("at", Value::DateTime(Ticks(instants[number % 5]))),
            ("g", Value::Guid(if number.is_multiple_of(2) { [0; 16] } else { [(number * 37) as u8; 16] })),
            ("big", Value::Int64([i64::MIN, -1, 0, i64::MAX][number % 4])),
            ("v_bool", of(3, Value::Bool(number.is_multiple_of(2)))),
            ("v_float", of(8, Value::Float64(floats[number % 7]))),
            ("v_text", of(4, texts[number % 5].into())),
            ("v_binary", of(5, Value::Binary(vec![0; number % 4]))),
            ("v_at", of(6, Value::DateTime(Ticks(instants[(number + 1) % 5])))),
        ];
        let columns = self.table("all_kinds").columns().iter();
        let value =
            |name: &str| values.iter().find(|(there, _)| *there == name).expect("it is there").1.clone();
        Row { values: columns.map(|column| value(&column.name)).collect() }
    }

    /// Rows of a mapping.
    pub(crate) fn rows_of(&self, shardlet: &Shardlet) -> Vec<Row> {
        let table = self.table("all_kinds");
        let holds = |row: &Row| {
            let (key, _) = table.check_row(row).expect("a row");
            shardlet.holds(&key.values[..2])
        };
        self.rows().into_iter().filter(holds).collect()
    }
}

impl Home {
    /// Runs statements; memory has none.
    pub(crate) fn run(&self, statements: &str) {
        match self {
            Home::Memory => {}
            Home::Sqlite(folder) => {
                let connection = rusqlite::Connection::open(folder.path().join("shard.db"));
                connection.expect("a database").execute_batch(statements).expect("statements");
            }
            Home::Postgres(server) => server.run("shard", statements),
        }
    }
}
