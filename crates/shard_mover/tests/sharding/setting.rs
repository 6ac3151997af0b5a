//! Shards in memory, their map of pins over ranges over a hash, and what all parts of a history share.

use crate::faults::Fault;
use crate::gate::{EXPIRES_AFTER, Gate, GatedLocal, GatedRecords};
use crate::ledger::{Ending, Ledger, RowId};
use crate::mover_rows::MoverRows;
use crate::verified::WatchedRecords;
use base::{Clock, Environment, Random, Spawner};
use parking_lot::Mutex;
use shard_backend::{
    Backend, BatchBounds, Capabilities, DigestKey, FenceHold, MemoryBackend, Row, Schema, Shardlet, Value,
};
use shard_map::{
    Catalog, Change, Epoch, Hashed, KeyHash, KeyKind, KeyType, MapBuilder, Name, Placement, Shard, ShardMap,
};
use shard_mover::{Mover, MoverSettings, NamedDigestKey, Shards};
use shard_store::{
    CatalogHome, HomeError, LocalStore, LocalStores, MemoryFaults, MemoryLocal, MemoryRecords,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

pub(crate) const TENANTS: i32 = 20;
/// Tenants below it are in ranges, unless they are pinned.
pub(crate) const HASHED_FROM: i32 = 14;
pub(crate) const SHARDS: [&str; 3] = ["a", "b", "c"];
pub(crate) const TABLES: [&str; 2] = ["notes", "tags"];
/// How far clients' clocks are off, at most, to either side.
pub(crate) const CLOCK_BOUND: Duration = Duration::from_secs(2);
/// The number of the row that each tenant has from the start, and that nothing changes.
const FIRST_NUMBER: i32 = 99;

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// A shard.
pub(crate) struct SimShard {
    pub(crate) local: Arc<MemoryLocal>,
    pub(crate) rows: Arc<MemoryBackend>,
    pub(crate) is_signed: bool,
}

/// What happened, for what a run must have reached.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) acknowledged: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) read: AtomicU64,
    pub(crate) map_changes: AtomicU64,
    /// Operations that shards acknowledged and did not do as a whole.
    pub(crate) lossy: AtomicU64,
    pub(crate) certified: AtomicU64,
    /// Changes of the map that were refused because a mapping was frozen.
    pub(crate) frozen: AtomicU64,
}

pub(crate) struct Setting {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) records: Arc<MemoryRecords>,
    pub(crate) shards: BTreeMap<Name, Arc<SimShard>>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) counts: Counts,
    /// What was found to be wrong first.
    pub(crate) wrong: Mutex<Option<String>>,
    pub(crate) is_over: AtomicBool,
    pub(crate) fault: Option<Fault>,
    /// Whether shards have rows from the start that former placements left there.
    pub(crate) has_stale: bool,
}

fn schema() -> Schema {
    let table = |name: &str| {
        format!(
            "[sharded.{name}]\nkey = \"tenant\"\nprimary_key = [\"tenant\", \"number\"]\n\
             columns = {{ tenant = \"int32\", number = \"int32\", text = \"text null\" }}\n"
        )
    };
    Schema::parse(&format!("map = \"m\"\n{}{}", table(TABLES[0]), table(TABLES[1]))).expect("a schema")
}

/// Columns are in the order of their names.
pub(crate) fn row((_, tenant, number): RowId, text: &str) -> Row {
    Row { values: vec![number.into(), tenant.into(), text.into()] }
}

/// The inverse of [`row`].
pub(crate) fn read_row(table: usize, row: &Row) -> (RowId, String) {
    match row.values.as_slice() {
        [Value::Int32(number), Value::Int32(tenant), Value::Text(text)] => {
            ((table, *tenant, *number), text.clone())
        }
        other => unreachable!("{other:?}"),
    }
}

impl SimShard {
    /// All rows, as they are now.
    pub(crate) fn contents(&self) -> BTreeMap<RowId, String> {
        let of = |(number, table): (usize, &&str)| {
            self.rows.contents(table).into_iter().map(move |row| read_row(number, &row))
        };
        TABLES.iter().enumerate().flat_map(of).collect()
    }
}

impl Setting {
    pub(crate) async fn new(env: &Environment, fault: Option<Fault>) -> Arc<Self> {
        let (clock, random, spawner) = (env.clock.clone(), env.random.clone(), env.spawner.clone());
        let schema = Arc::new(schema());
        let shard = |text: &str| {
            let is_signed = random.next_u64().is_multiple_of(2);
            let can = if is_signed { Capabilities::STORAGE_TABLES } else { Capabilities::POSTGRES };
            let local = Arc::new(MemoryLocal::new(text, random.clone()));
            let rows = Arc::new(MemoryBackend::new(text, can, local.clone(), random.clone()));
            rows.create_tables(&schema);
            (name(text), Arc::new(SimShard { local, rows, is_signed }))
        };
        let shards = SHARDS.map(shard).into();
        let records = Arc::new(MemoryRecords::new("the home", random.clone()));
        let has_stale = random.next_u64().is_multiple_of(2);
        let setting = Arc::new(Setting {
            clock,
            random,
            spawner,
            records,
            shards,
            schema,
            ledger: Mutex::default(),
            counts: Counts::default(),
            wrong: Mutex::default(),
            is_over: AtomicBool::new(false),
            fault,
            has_stale,
        });
        let catalog = setting.create_map().await;
        setting.fill(&catalog).await;
        if setting.has_stale {
            setting.fill_stale(&catalog).await;
        }
        setting
    }

    async fn create_map(&self) -> Catalog {
        let home = self.home();
        let empty = home.create(&name("app")).await.expect("a catalog");
        let mut map = MapBuilder::new(name("m"), KeyType::new([KeyKind::Int32]).expect("a type"));
        map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 2 }).expect("a hash");
        map.spread(&[name("b"), name("c")]).expect("room");
        let (middle, high) = ([(HASHED_FROM / 2).into()], [HASHED_FROM.into()]);
        map.range(&[], Some(&middle), Placement::on(name("a"))).expect("a range");
        map.range(&middle, Some(&high), Placement::on(name("b"))).expect("a range");
        map.pin(&[2.into()], Placement::on(name("c"))).expect("a pin");
        let mut changes: Vec<Change> =
            SHARDS.iter().map(|shard| Change::AddShard(Shard::new(name(shard), *shard))).collect();
        changes.push(Change::AddMap(map.build().expect("a map")));
        let decide = |_: &_| Ok::<_, HomeError>(changes.clone());
        let catalog = home.change(&empty, "start", decide).await.expect("a map").catalog;
        home.publish(&catalog, &self.locals()).await.expect("published");
        catalog
    }

    async fn fill(&self, catalog: &Catalog) {
        let map = catalog.map("m").expect("it");
        for tenant in 0..TENANTS {
            let route = map.route(&[tenant.into()]).expect("a route");
            let shardlet = Shardlet::new(map.clone(), route.mapping.clone()).expect("it");
            let hold = FenceHold::Open(route.placement.since);
            for (number, table) in TABLES.iter().enumerate() {
                let (id, table) = ((number, tenant, FIRST_NUMBER), self.schema.table(table).expect("it"));
                let rows = &self.shards[&route.placement.shard].rows;
                rows.write(table, &shardlet, hold, &[row(id, "first")]).await.expect("written");
                let mut ledger = self.ledger.lock();
                let change = ledger.begin(id, Some("first".to_owned()));
                ledger.end(id, change, Ending::Acknowledged);
            }
        }
    }

    /// Another text of a row that is there, and a row that the owner has no more.
    async fn fill_stale(&self, catalog: &Catalog) {
        let map = catalog.map("m").expect("it");
        for tenant in 0..TENANTS {
            let route = map.route(&[tenant.into()]).expect("a route");
            let shardlet = Shardlet::new(map.clone(), route.mapping.clone()).expect("it");
            for (shard, there) in self.shards.iter().filter(|(shard, _)| **shard != route.placement.shard) {
                there.rows.claim(&shardlet, Epoch(1)).await.expect("claimed");
                for (number, table) in TABLES.iter().enumerate() {
                    let table = self.schema.table(table).expect("it");
                    let stale = [FIRST_NUMBER, FIRST_NUMBER - 1].map(|of| row((number, tenant, of), "stale"));
                    let written =
                        there.rows.write(table, &shardlet, FenceHold::Closed(Epoch(1)), &stale).await;
                    written.unwrap_or_else(|error| panic!("{shard}: {error}"));
                }
            }
        }
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    pub(crate) fn is_one_in(&self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    /// Some milliseconds; now and then longer than a whole move, and than any signature holds.
    pub(crate) async fn pause(&self) {
        let ms = if self.is_one_in(12) { self.below(60_000) } else { self.below(20) };
        self.clock.sleep(Duration::from_millis(ms)).await;
    }

    pub(crate) fn home(&self) -> CatalogHome {
        CatalogHome::new(self.records.clone(), self.clock.clone(), self.random.clone())
    }

    pub(crate) fn locals(&self) -> LocalStores {
        let local = |(name, shard): (&Name, &Arc<SimShard>)| {
            (name.clone(), shard.local.clone() as Arc<dyn LocalStore>)
        };
        self.shards.iter().map(local).collect()
    }

    /// The newest map, whatever fails.
    pub(crate) async fn true_catalog(&self) -> Catalog {
        let records = MemoryRecords::new("a copy", self.random.clone());
        records.restore(self.records.contents());
        let home = CatalogHome::new(Arc::new(records), self.clock.clone(), self.random.clone());
        home.load().await.expect("a catalog")
    }

    /// The map of a catalog.
    pub(crate) fn map(catalog: &Catalog) -> &Arc<ShardMap> {
        catalog.map("m").expect("it")
    }

    /// From now on all places fail so often.
    pub(crate) fn set_faults(&self, faults: MemoryFaults) {
        self.records.set_faults(faults);
        for shard in self.shards.values() {
            shard.local.set_faults(faults);
            shard.rows.set_faults(faults);
        }
    }

    pub(crate) fn found(&self, what: Result<(), String>) {
        if let Err(what) = what {
            self.wrong.lock().get_or_insert(what);
        }
    }

    pub(crate) fn mover(self: &Arc<Self>, gate: &Arc<Gate>) -> Mover {
        let local = |(name, shard): (&Name, &Arc<SimShard>)| {
            let gated = GatedLocal(shard.local.clone(), gate.clone());
            (name.clone(), Arc::new(gated) as Arc<dyn LocalStore>)
        };
        let rows = |(name, shard): (&Name, &Arc<SimShard>)| {
            let rows = MoverRows { setting: self.clone(), shard: shard.clone(), gate: gate.clone() };
            (name.clone(), Arc::new(rows) as Arc<dyn Backend>)
        };
        let shards = Shards {
            locals: self.shards.iter().map(local).collect(),
            backends: self.shards.iter().map(rows).collect(),
        };
        let mut settings = MoverSettings::new(NamedDigestKey { id: "test".to_owned(), key: digest_key() });
        settings.expires_after = EXPIRES_AFTER;
        settings.clock_bound = CLOCK_BOUND;
        settings.batch = BatchBounds { rows_max: 5, ..BatchBounds::default() };
        settings.progress_every_rows = 6;
        settings.planted = Fault::of_movers(self.fault);
        let records = GatedRecords(self.records.clone(), gate.clone());
        let records = Arc::new(WatchedRecords { records, setting: self.clone() });
        Mover::new(records, shards, self.schema.clone(), settings, (self.clock.clone(), self.random.clone()))
    }
}

pub(crate) fn digest_key() -> DigestKey {
    DigestKey::new([7; 16])
}
