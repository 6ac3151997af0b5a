//! A home in memory that takes its time, and shards' copies.

use base::{BoxFuture, Clock, Environment, Random, Spawner, Ticks};
use shard_map::{
    Catalog, Change, KeyKind, KeyType, KeyValue, MapBuilder, MapChange, Name, Placement, Selection, Shard,
    State,
};
use shard_router::{
    CachedMap, MapSettings, PoolSettings, Router, RouterParts, ShardConnector, ShardCredentials,
};
use shard_store::{
    CatalogHome, HomeError, LocalStore, LocalStores, MemoryLocal, MemoryRecords, Put, Record, Records,
    StoreError,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What each operation of the home takes.
pub(crate) const HOME_FOR: Duration = Duration::from_millis(5);
/// The keys below it are on `s0`, those from `SECOND` on `s1`, those from `THIRD` on `s2`.
pub(crate) const SECOND: i32 = 4;
pub(crate) const THIRD: i32 = 8;

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// The map `m` of three ranges on three shards, and the map `pins` with no mapping.
pub(crate) fn changes(locations: [&str; 3]) -> Vec<Change> {
    let key = || KeyType::new([KeyKind::Int32]).expect("a type");
    let mut map = MapBuilder::new(name("m"), key());
    let on = |shard: &str| Placement::on(name(shard));
    map.range(&[], Some(&[SECOND.into()]), on("s0")).expect("a range");
    map.range(&[SECOND.into()], Some(&[THIRD.into()]), on("s1")).expect("a range");
    map.range(&[THIRD.into()], None, on("s2")).expect("a range");
    let shards = ["s0", "s1", "s2"].into_iter().zip(locations);
    let shards = shards.map(|(shard, location)| Change::AddShard(Shard::new(name(shard), location)));
    let maps = [map, MapBuilder::new(name("pins"), key())];
    shards.chain(maps.map(|map| Change::AddMap(map.build().expect("a map")))).collect()
}

/// The range of the map `m` that begins there; `None`: the first.
pub(crate) fn range(low: Option<i32>) -> Selection {
    Selection::Range(low.map(KeyValue::from).into_iter().collect())
}

pub(crate) fn place(low: Option<i32>, shard: &str) -> Change {
    Change::Map(name("m"), MapChange::Place { mappings: range(low), shard: name(shard) })
}

pub(crate) fn set_state(low: Option<i32>, state: State) -> Change {
    Change::Map(name("m"), MapChange::SetState { mappings: range(low), state })
}

/// A home and shards' copies.
pub(crate) struct Setup {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) records: Arc<MemoryRecords>,
    pub(crate) home: CatalogHome,
    pub(crate) locals: BTreeMap<Name, Arc<MemoryLocal>>,
}

impl Setup {
    /// With the maps of [`changes`], published.
    pub(crate) async fn start(env: &Environment) -> Self {
        let setup = Self::without_catalog(env);
        setup.home.create(&name("catalog")).await.expect("a catalog");
        setup.change(changes(["s0", "s1", "s2"])).await;
        setup.publish().await;
        setup
    }

    pub(crate) fn without_catalog(env: &Environment) -> Self {
        let (clock, random, spawner) = (env.clock.clone(), env.random.clone(), env.spawner.clone());
        let records = Arc::new(MemoryRecords::new("the home", random.clone()));
        let slow =
            Arc::new(SlowRecords { records: records.clone(), clock: clock.clone(), operation_for: HOME_FOR });
        let home = CatalogHome::new(slow, clock.clone(), random.clone());
        let local = |shard: &str| (name(shard), Arc::new(MemoryLocal::new(shard, random.clone())));
        let locals = ["s0", "s1", "s2"].map(local).into();
        Setup { clock, random, spawner, records, home, locals }
    }

    pub(crate) async fn change(&self, changes: Vec<Change>) -> Catalog {
        let known = self.home.load().await.expect("a catalog");
        let changed = self.home.change::<HomeError>(&known, "", |_| Ok(changes.clone())).await;
        changed.expect("a change").catalog
    }

    pub(crate) async fn publish(&self) {
        let known = self.home.load().await.expect("a catalog");
        let store = |(shard, local): (&Name, &Arc<MemoryLocal>)| {
            (shard.clone(), local.clone() as Arc<dyn LocalStore>)
        };
        let stores: LocalStores = self.locals.iter().map(store).collect();
        let published = self.home.publish(&known, &stores).await.expect("published");
        assert!(published.is_complete(), "{published:?}");
    }

    /// A map as one client has it.
    pub(crate) fn map(&self, settings: MapSettings) -> CachedMap {
        CachedMap::new(self.home.clone(), self.clock.clone(), self.spawner.clone(), settings)
    }

    /// A router as one client has it.
    pub(crate) fn router<C: ShardConnector>(&self, connector: C) -> Router<C> {
        self.router_of(self.map(MapSettings::default()), connector)
    }

    pub(crate) fn router_of<C: ShardConnector>(&self, map: CachedMap, connector: C) -> Router<C> {
        Router::new(RouterParts {
            map,
            connector: Arc::new(connector),
            credentials: Arc::new(ShardCredentials::default()),
            clock: self.clock.clone(),
            spawner: self.spawner.clone(),
            pool: PoolSettings::default(),
        })
    }
}

/// Records of which each operation takes so long.
pub(crate) struct SlowRecords {
    pub(crate) records: Arc<MemoryRecords>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) operation_for: Duration,
}

impl Records for SlowRecords {
    fn place(&self) -> &str {
        "the home"
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            self.clock.sleep(self.operation_for).await;
            self.records.put(key, value).await
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            self.clock.sleep(self.operation_for).await;
            self.records.get(key).await
        })
    }

    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            self.clock.sleep(self.operation_for).await;
            self.records.list(from, to, count_max).await
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.records.remove(key)
    }
}

/// A clock whose wall is wrong by so much.
pub(crate) struct WrongClock {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) by_ticks: i64,
}

impl Clock for WrongClock {
    fn now(&self) -> Ticks {
        Ticks(self.clock.now().0.saturating_add_signed(self.by_ticks))
    }
    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(sleep_for)
    }
}
