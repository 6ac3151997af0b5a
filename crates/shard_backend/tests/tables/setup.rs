//! A shard in an account: a map of virtual shards and pins, tables, and what writes them.

use crate::served_account::ServedAccount;
use base::connector::SystemConnector;
use base::system::{SystemClock, SystemRandom, TokioSpawner};
use base::{BoxFuture, Clock, Ticks};
use shard_backend::{Backend, BatchBounds, Row, Schema, Shardlet, TableBackend, TablePlace};
use shard_map::{
    Catalog, Change, KeyKind, KeyType, MapBuilder, MapChange, MappingId, Name, Placement, Selection, Shard,
    State,
};
use shard_store::LocalCopy;
use std::sync::Arc;
use std::time::Duration;
use storage_client::{
    AccountKey, DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME, Proxies, Settings, Surroundings,
};

pub(crate) const SCHEMA: &str = r#"
map = "m"
[sharded.notes]
key = "tenant"
primary_key = ["tenant", "number"]
columns = { tenant = "text", number = "int32", note = "text null", yes = "bool null", long = "int64 null", real = "float64 null", bytes = "binary null", at = "date-time null", id = "guid null" }
[sharded.tenants]
key = "tenant"
primary_key = ["tenant"]
columns = { tenant = "text", note = "text null" }
[reference.countries]
primary_key = ["code"]
columns = { code = "text", name = "text" }
"#;

/// A clock whose wall is wrong by so much.
pub(crate) struct WrongClock {
    pub(crate) clock: SystemClock,
    pub(crate) by_s: i64,
}

impl Clock for WrongClock {
    fn now(&self) -> Ticks {
        Ticks(self.clock.now().0.saturating_add_signed(self.by_s * base::clock::TICKS_PER_SECOND as i64))
    }
    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(sleep_for)
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

pub(crate) struct Setup {
    pub(crate) account: ServedAccount,
    pub(crate) schema: Arc<Schema>,
    /// Tenants before `n` are one range, `m` is pinned, the others are another range; all on shard `one`.
    pub(crate) catalog: Catalog,
}

impl Setup {
    pub(crate) async fn serve() -> Self {
        let mut map = MapBuilder::new(name("m"), KeyType::new([KeyKind::Text]).expect("a type"));
        let on = || Placement::on(name("one"));
        map.range(&[], Some(&["n".into()]), on()).expect("a range");
        map.range(&["n".into()], None, on()).expect("a range");
        map.pin(&["m".into()], on()).expect("a pin");
        let changes =
            [Change::AddShard(Shard::new(name("one"), "one")), Change::AddMap(map.build().expect("a map"))];
        let catalog = Catalog::new(name("app"), [7; 16]).apply(&changes).expect("a catalog").catalog;
        let schema = Arc::new(Schema::parse(SCHEMA).expect("a schema"));
        let setup = Setup { account: ServedAccount::serve().await, schema, catalog };
        setup.backend(0).create_tables().await.expect("tables");
        setup
    }

    /// A handle as a process has it whose clock is wrong by so much.
    pub(crate) fn backend(&self, clock_by_s: i64) -> TableBackend {
        let surroundings = Surroundings {
            clock: Arc::new(WrongClock { clock: SystemClock::new(), by_s: clock_by_s }),
            random: Arc::new(SystemRandom::new()),
            spawner: Arc::new(TokioSpawner::current()),
            connector: Arc::new(SystemConnector),
        };
        let settings =
            Settings { proxies: Proxies::none(), retry: retry::Policy::none(), ..Settings::default() };
        let at = TablePlace {
            account: DEVELOPMENT_ACCOUNT_NAME.to_owned(),
            endpoint: self.account.location(),
            key: AccountKey::from_base64(DEVELOPMENT_ACCOUNT_KEY).expect("a key"),
            copies: "larimarshard".to_owned(),
        };
        TableBackend::new(at, self.schema.clone(), settings, surroundings).expect("an address")
    }

    pub(crate) fn shardlet(&self, tenant: &str) -> Shardlet {
        let map = self.catalog.map("m").expect("it").clone();
        let mapping: MappingId = map.route(&[tenant.into()]).expect("a route").mapping;
        Shardlet::new(map, mapping).expect("it")
    }

    /// What the shard's copy has, with the mapping of a tenant in a state.
    pub(crate) async fn publish(&self, tenant: &str, state: State) {
        let mappings = match tenant {
            "m" => Selection::Pin(vec!["m".into()]),
            tenant if tenant < "n" => Selection::Range(Vec::new()),
            _ => Selection::Range(vec!["n".into()]),
        };
        let change = Change::Map(name("m"), MapChange::SetState { mappings, state });
        let catalog = self.catalog.apply(&[change]).map_or(self.catalog.clone(), |changed| changed.catalog);
        let copy = LocalCopy::of(&catalog, "one").expect("the shard");
        let local = self.backend(0).local();
        let there = local.read().await.expect("read").map(|stored| stored.revision);
        local.replace(there.as_ref(), Some(&copy)).await.expect("published");
    }
}

/// A note with a text and nothing else. Columns are in the order of their names.
pub(crate) fn note(tenant: &str, number: i32, text: &str) -> Row {
    use shard_backend::Value::Null;
    let (number, text) = (number.into(), text.into());
    Row { values: vec![Null, Null, Null, Null, text, number, Null, tenant.into(), Null] }
}

/// All rows of a table's shardlet in batches of `rows_max`; they are in the order of their keys.
pub(crate) async fn scan(
    backend: &dyn Backend,
    (schema, table): (&Schema, &str),
    shardlet: &Shardlet,
    rows_max: usize,
) -> Vec<Row> {
    let table = schema.table(table).expect("it");
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let bounds = BatchBounds { rows_max, ..BatchBounds::default() };
        let batch = backend.scan(table, shardlet, after.as_ref(), bounds).await.expect("a batch");
        assert!(batch.rows.len() <= rows_max);
        rows.extend(batch.rows);
        match batch.next {
            Some(next) => {
                assert!(after.as_ref().is_none_or(|after| *after < next), "it goes on where it was");
                after = Some(next);
            }
            None => break,
        }
    }
    let keys: Vec<_> = rows.iter().map(|row| table.check_row(row).expect("a row").1).collect();
    assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
    assert_eq!(backend.count(table, shardlet).await.expect("a count"), rows.len() as u64);
    rows
}
