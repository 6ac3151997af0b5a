//! Places in memory that are slow and fail, and an observer of what they hold.
//!
//! The observer sees each entry of the log as soon as it is there, so it knows every route that a client can
//! know, and each copy as soon as it is written, so it knows which routes pass.

use base::{BoxFuture, Clock, Environment, Random};
use parking_lot::Mutex;
use shard_map::{Catalog, Epoch, KeyValue, MappingId, Name};
use shard_store::{
    Access, CatalogHome, LocalCopy, LocalStore, LocalStores, MemoryFaults, MemoryLocal, MemoryRecords, Put,
    Record, Records, Replaced, Revision, StoreError, StoredCopy,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The keys that are looked at.
pub(crate) const KEYS: std::ops::Range<i32> = 0..12;

/// A route as a client keeps it.
type KnownRoute = (Name, MappingId, Epoch);

/// All that is seen.
pub(crate) struct Observed {
    seed: u64,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) records: Arc<MemoryRecords>,
    pub(crate) shards: BTreeMap<Name, Arc<MemoryLocal>>,
    known: Mutex<BTreeMap<(Name, i32), BTreeSet<KnownRoute>>>,
    newest: Mutex<Option<Catalog>>,
    is_calm: AtomicBool,
    held: AtomicUsize,
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

impl Observed {
    pub(crate) fn new(env: &Environment, seed: u64) -> Arc<Self> {
        let random = env.random.clone();
        let shard = |shard: &str| (name(shard), Arc::new(MemoryLocal::new(shard, random.clone())));
        Arc::new(Observed {
            seed,
            clock: env.clock.clone(),
            records: Arc::new(MemoryRecords::new("the home", random.clone())),
            shards: ["s0", "s1", "s2", "s3"].map(shard).into(),
            random,
            known: Mutex::default(),
            newest: Mutex::default(),
            is_calm: AtomicBool::new(false),
            held: AtomicUsize::new(0),
        })
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// Places fail from now on.
    pub(crate) fn disturb(&self) {
        let faults = MemoryFaults { not_done_one_in: 40, done_one_in: 40 };
        self.records.set_faults(faults);
        self.shards.values().for_each(|shard| shard.set_faults(faults));
    }

    /// Nothing fails any more, and nothing is slow.
    pub(crate) fn calm(&self) {
        self.records.set_faults(MemoryFaults::default());
        for shard in self.shards.values() {
            shard.set_faults(MemoryFaults::default());
            shard.set_down(false);
        }
        self.is_calm.store(true, Ordering::Relaxed);
    }

    async fn pause(&self) {
        if !self.is_calm.load(Ordering::Relaxed) && self.below(3) == 0 {
            self.clock.sleep(Duration::from_micros(self.below(3000))).await;
        }
    }

    pub(crate) fn add_held(&self, count: usize) {
        self.held.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// A home over the place, as one process has it.
    pub(crate) fn home(self: &Arc<Self>) -> CatalogHome {
        let records = Arc::new(SlowRecords(self.clone()));
        CatalogHome::new(records, self.clock.clone(), self.random.clone())
    }

    /// The shards, as one process has them.
    pub(crate) fn stores(self: &Arc<Self>) -> LocalStores {
        let store = |shard: &Name| Arc::new(SlowLocal(self.clone(), shard.clone())) as Arc<dyn LocalStore>;
        self.shards.keys().map(|shard| (shard.clone(), store(shard))).collect()
    }

    /// The newest epoch, read without faults.
    pub(crate) async fn catalog(&self) -> Catalog {
        let copy = Arc::new(MemoryRecords::new("a copy", self.random.clone()));
        copy.restore(self.records.contents());
        let home = CatalogHome::new(copy, self.clock.clone(), self.random.clone());
        let known = self.newest.lock().clone();
        let newest = match known {
            Some(known) => home.refresh(&known).await,
            None => home.load().await,
        };
        newest.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed))
    }

    /// Learns the routes of a new epoch.
    async fn see_map(&self) {
        let catalog = self.catalog().await;
        self.learn(&catalog);
        *self.newest.lock() = Some(catalog);
    }

    pub(crate) fn learn(&self, catalog: &Catalog) {
        let mut known = self.known.lock();
        for map in catalog.maps() {
            for key in KEYS {
                let Ok(route) = map.route(&[KeyValue::Int32(key)]) else { continue };
                let route = (route.placement.shard.clone(), route.mapping, route.placement.since);
                known.entry((map.name().clone(), key)).or_default().insert(route);
            }
        }
    }

    /// The former map is gone; what clients know of it they go on knowing.
    pub(crate) fn forget_map(&self) {
        *self.newest.lock() = None;
    }

    /// Panics if writes of a key pass at two shards.
    pub(crate) fn check(&self) {
        let copies: BTreeMap<&Name, LocalCopy> =
            self.shards.iter().filter_map(|(name, shard)| Some((name, shard.contents()?))).collect();
        for ((map, key), routes) in &*self.known.lock() {
            let passing: BTreeSet<_> = routes
                .iter()
                .filter(|(shard, mapping, since)| {
                    copies
                        .get(shard)
                        .is_some_and(|copy| copy.check(map, mapping, *since, Access::Write).is_ok())
                })
                .collect();
            let shards: BTreeSet<&Name> = passing.iter().map(|(shard, _, _)| shard).collect();
            assert!(
                shards.len() <= 1,
                "seed {}: key {key} of map {map} is written at {passing:?}",
                self.seed
            );
        }
    }
}

struct SlowRecords(Arc<Observed>);

impl Records for SlowRecords {
    fn place(&self) -> &str {
        "the home"
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            self.0.pause().await;
            let put = self.0.records.put(key, value).await;
            if key.starts_with("entry-") || key.starts_with("snapshot-") {
                self.0.see_map().await;
            }
            self.0.pause().await;
            put
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            self.0.pause().await;
            self.0.records.get(key).await
        })
    }

    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            self.0.pause().await;
            let found = self.0.records.list(from, to, count_max).await;
            self.0.pause().await;
            found
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.0.pause().await;
            self.0.records.remove(key).await
        })
    }
}

struct SlowLocal(Arc<Observed>, Name);

impl LocalStore for SlowLocal {
    fn place(&self) -> &str {
        self.1.as_str()
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<StoredCopy>, StoreError>> {
        Box::pin(async move {
            self.0.pause().await;
            let read = self.0.shards[&self.1].read().await;
            self.0.pause().await;
            read
        })
    }

    fn replace<'a>(
        &'a self,
        expected: Option<&'a Revision>,
        copy: Option<&'a LocalCopy>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        Box::pin(async move {
            self.0.pause().await;
            let replaced = self.0.shards[&self.1].replace(expected, copy).await;
            self.0.check();
            self.0.pause().await;
            replaced
        })
    }
}
