//! Three shards in memory with a map of four virtual shards, and what must be true of their rows.

use crate::gate::{EXPIRES_AFTER, Gate, GatedBackend, GatedLocal, GatedRecords};
use base::{Clock, Environment, Random};
use parking_lot::Mutex;
use shard_backend::{
    Backend, BatchBounds, Capabilities, DigestKey, FenceHold, MemoryBackend, MoveMode, Row, RowKey, Schema,
    Shardlet,
};
use shard_map::{
    Catalog, Change, Epoch, Hashed, KeyHash, KeyKind, KeyType, MapBuilder, MappingId, Name, Shard, ShardMap,
};
use shard_mover::{Mover, MoverSettings, NamedDigestKey, PlannedMove, Planted, Shards};
use shard_store::{CatalogHome, HomeError, LocalStore, MemoryLocal, MemoryRecords};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const TENANTS: i32 = 12;
pub(crate) const SHARDS: [&str; 3] = ["a", "b", "c"];

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// The rows that clients wrote: a table, a tenant and a number, and the text.
pub(crate) type Model = BTreeMap<(&'static str, i32, i32), String>;

pub(crate) struct Setting {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) records: Arc<MemoryRecords>,
    pub(crate) locals: BTreeMap<Name, Arc<MemoryLocal>>,
    pub(crate) backends: BTreeMap<Name, Arc<MemoryBackend>>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) model: Mutex<Model>,
}

fn schema() -> Schema {
    let table = |name: &str| {
        format!(
            "[sharded.{name}]\nkey = \"tenant\"\nprimary_key = [\"tenant\", \"number\"]\n\
             columns = {{ tenant = \"int32\", number = \"int32\", text = \"text null\" }}\n"
        )
    };
    Schema::parse(&format!("map = \"m\"\n{}{}", table("notes"), table("tags"))).expect("a schema")
}

/// Columns are in the order of their names.
pub(crate) fn row(tenant: i32, number: i32, text: &str) -> Row {
    Row { values: vec![number.into(), tenant.into(), text.into()] }
}

pub(crate) fn row_key(tenant: i32, number: i32) -> RowKey {
    RowKey { values: vec![tenant.into(), number.into()] }
}

/// Four virtual shards on two shards.
pub(crate) fn hashed() -> MapBuilder {
    let mut map = MapBuilder::new(name("m"), KeyType::new([KeyKind::Int32]).expect("a type"));
    map.hash(Hashed { hash: KeyHash::Sha256V1, columns: 1, count: 4 }).expect("a hash");
    map.spread(&[name("a"), name("b")]).expect("room");
    map
}

impl Setting {
    /// All tenants have rows, and shards have rows that a former placement left there.
    pub(crate) async fn new(env: &Environment, capabilities: [Capabilities; 3]) -> Arc<Self> {
        Setting::of_map(env, capabilities, hashed().build().expect("a map")).await
    }

    /// The same with another map.
    pub(crate) async fn of_map(
        env: &Environment,
        capabilities: [Capabilities; 3],
        map: ShardMap,
    ) -> Arc<Self> {
        let (clock, random) = (env.clock.clone(), env.random.clone());
        let local = |shard: &str| (name(shard), Arc::new(MemoryLocal::new(shard, random.clone())));
        let locals: BTreeMap<Name, Arc<MemoryLocal>> = SHARDS.map(local).into();
        let schema = Arc::new(schema());
        let backends = locals.iter().zip(capabilities).map(|((shard, local), can)| {
            let backend = MemoryBackend::new(shard.as_str(), can, local.clone(), random.clone());
            backend.create_tables(&schema);
            (shard.clone(), Arc::new(backend))
        });
        let backends = backends.collect();
        let records = Arc::new(MemoryRecords::new("the home", random.clone()));
        let model = Mutex::default();
        let setting = Arc::new(Setting { clock, random, records, locals, backends, schema, model });
        let catalog = setting.create_map(map).await;
        setting.fill(&catalog).await;
        setting
    }

    async fn create_map(&self, map: ShardMap) -> Catalog {
        let home = self.home();
        let empty = home.create(&name("app")).await.expect("a catalog");
        let mut changes: Vec<Change> =
            SHARDS.iter().map(|shard| Change::AddShard(Shard::new(name(shard), *shard))).collect();
        changes.push(Change::AddMap(map));
        let decide = |_: &_| Ok::<_, HomeError>(changes.clone());
        let catalog = home.change(&empty, "start", decide).await.expect("a map").catalog;
        self.publish(&catalog).await;
        catalog
    }

    pub(crate) async fn publish(&self, catalog: &Catalog) {
        let locals =
            self.locals.iter().map(|(name, local)| (name.clone(), local.clone() as Arc<dyn LocalStore>));
        self.home().publish(catalog, &locals.collect()).await.expect("published");
    }

    async fn fill(&self, catalog: &Catalog) {
        let map = catalog.map("m").expect("it");
        for table in ["notes", "tags"] {
            for tenant in 0..TENANTS {
                let route = map.route(&[tenant.into()]).expect("a route");
                let shardlet = Shardlet::new(map.clone(), route.mapping.clone()).expect("it");
                let schema = self.schema.table(table).expect("it");
                for (shard, backend) in &self.backends {
                    let is_owner = *shard == route.placement.shard;
                    let hold = match is_owner {
                        true => FenceHold::Open(route.placement.since),
                        false => {
                            backend.claim(&shardlet, Epoch(1)).await.expect("claimed");
                            FenceHold::Closed(Epoch(1))
                        }
                    };
                    // What is stale is another row, or one that the owner has no more.
                    let rows: Vec<Row> = match is_owner {
                        true => (0..4).map(|number| row(tenant, number, "first")).collect(),
                        false => vec![row(tenant, 1, "stale"), row(tenant, 9, "stale")],
                    };
                    backend.write(schema, &shardlet, hold, &rows).await.expect("written");
                }
                let mut model = self.model.lock();
                model.extend((0..4).map(|number| ((table, tenant, number), "first".to_owned())));
            }
        }
    }

    pub(crate) fn home(&self) -> CatalogHome {
        CatalogHome::new(self.records.clone(), self.clock.clone(), self.random.clone())
    }

    pub(crate) fn mover(&self, gate: &Arc<Gate>, planted: Planted) -> Mover {
        let local = |(name, local): (&Name, &Arc<MemoryLocal>)| {
            (name.clone(), Arc::new(GatedLocal(local.clone(), gate.clone())) as Arc<dyn LocalStore>)
        };
        let backend = |(name, backend): (&Name, &Arc<MemoryBackend>)| {
            (name.clone(), Arc::new(GatedBackend(backend.clone(), gate.clone())) as Arc<dyn Backend>)
        };
        let shards = Shards {
            locals: self.locals.iter().map(local).collect(),
            backends: self.backends.iter().map(backend).collect(),
        };
        let digest_key = NamedDigestKey { id: "test".to_owned(), key: DigestKey::new([7; 16]) };
        let mut settings = MoverSettings::new(digest_key);
        settings.expires_after = EXPIRES_AFTER;
        settings.clock_bound = Duration::from_secs(1);
        settings.batch = BatchBounds { rows_max: 5, ..BatchBounds::default() };
        settings.progress_every_rows = 6;
        settings.parent_keys_max = 17;
        settings.planted = planted;
        let records = Arc::new(GatedRecords(self.records.clone(), gate.clone()));
        let outside = (self.clock.clone(), self.random.clone());
        Mover::new(records, shards, self.schema.clone(), settings, outside)
    }

    /// Moves of a virtual shard from where it is.
    pub(crate) fn planned(&self, catalog: &Catalog, number: u32, to: &str) -> PlannedMove {
        self.planned_of(catalog, MappingId::Virtual(number), to)
    }

    /// The same of any mapping.
    pub(crate) fn planned_of(&self, catalog: &Catalog, mapping: MappingId, to: &str) -> PlannedMove {
        let placement = catalog.map("m").expect("it").placement(&mapping).expect("it");
        PlannedMove {
            map: name("m"),
            mapping,
            from: placement.shard.clone(),
            to: name(to),
            mode: MoveMode::ReadOnly,
            rows: 24,
            bytes: 0,
            pause: Duration::ZERO,
        }
    }

    fn rows(&self, shard: &str, table: &'static str) -> Vec<((&'static str, i32, i32), String)> {
        let rows = self.backends[shard].contents(table).into_iter();
        let read = rows.map(|row| match row.values.as_slice() {
            [shard_backend::Value::Int32(number), shard_backend::Value::Int32(tenant), text] => {
                let shard_backend::Value::Text(text) = text else { unreachable!("texts only") };
                ((table, *tenant, *number), text.clone())
            }
            other => unreachable!("{other:?}"),
        });
        read.collect()
    }

    /// Whether each shard has exactly the rows of the model that the map routes to it; of the mappings that
    /// it does not have it may have others.
    pub(crate) fn check(&self, catalog: &Catalog) -> Result<(), String> {
        let (map, model) = (catalog.map("m").expect("it"), self.model.lock());
        let shard_of = |tenant: i32| map.route(&[tenant.into()]).expect("a route").placement.shard.clone();
        let mut found = Model::new();
        for shard in SHARDS {
            for table in ["notes", "tags"] {
                let rows = self.rows(shard, table).into_iter();
                found.extend(rows.filter(|((_, tenant, _), _)| shard_of(*tenant).as_str() == shard));
            }
        }
        if found == *model {
            return Ok(());
        }
        let lost: Vec<_> = model.iter().filter(|(key, text)| found.get(key) != Some(text)).collect();
        let more: Vec<_> = found.iter().filter(|(key, _)| !model.contains_key(key)).collect();
        Err(format!("lost or old: {lost:?}; not written: {more:?}"))
    }

    /// Rows of a virtual shard on a shard.
    pub(crate) fn count_on(&self, catalog: &Catalog, shard: &str, number: u32) -> usize {
        let map = catalog.map("m").expect("it");
        let is_of_it =
            |tenant: i32| map.route(&[tenant.into()]).expect("a route").mapping == MappingId::Virtual(number);
        let of = |table| {
            self.rows(shard, table).into_iter().filter(|((_, tenant, _), _)| is_of_it(*tenant)).count()
        };
        of("notes") + of("tags")
    }
}
