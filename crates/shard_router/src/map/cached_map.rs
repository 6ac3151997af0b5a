//! The map in memory: read once for all that wait, used by every request.
//!
//! What always holds: at most one read of the home runs at a time, and reads begin at most once in
//! [`MapSettings::read_interval_min`]; a map is only replaced by one of the same catalog and of no earlier
//! epoch; a lookup takes no lock. A read is a task of its own: it ends whether or not anything still waits
//! for it.

use super::choose_read::{ReadChoice, choose_read, is_failure_fresh, wait_before_read};
use super::error::MapReadError;
use super::map_read::{LookupError, MapRead};
use super::negative::{Negative, NegativeKey};
use super::settings::MapSettings;
use arc_swap::ArcSwapOption;
use base::{Clock, Spawner};
use futures_util::FutureExt;
use futures_util::future::Shared;
use parking_lot::Mutex;
use shard_map::KeyValue;
use shard_store::CatalogHome;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

type ReadOutcome = Result<Arc<MapRead>, MapReadError>;

/// A map in memory. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct CachedMap {
    inner: Arc<Inner>,
}

struct Inner {
    home: CatalogHome,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
    settings: MapSettings,
    current: ArcSwapOption<MapRead>,
    reads: Mutex<Reads>,
    read_count: AtomicU64,
    negative: Mutex<Negative>,
}

/// What is known of reads. Held for some instructions only.
#[derive(Default)]
struct Reads {
    running: Option<Shared<oneshot::Receiver<ReadOutcome>>>,
    last_began: Option<Duration>,
    failed: Option<(Duration, MapReadError)>,
}

impl CachedMap {
    /// The map of a home, which is read when it is first needed.
    pub fn new(
        home: CatalogHome,
        clock: Arc<dyn Clock>,
        spawner: Arc<dyn Spawner>,
        settings: MapSettings,
    ) -> Self {
        let (current, reads, negative) = (ArcSwapOption::empty(), Mutex::default(), Mutex::default());
        let read_count = AtomicU64::new(0);
        let inner = Inner { home, clock, spawner, settings, current, reads, read_count, negative };
        CachedMap { inner: Arc::new(inner) }
    }

    /// How often the home was read so far.
    pub fn read_count(&self) -> u64 {
        self.inner.read_count.load(Ordering::Relaxed)
    }

    /// The map if one is cached that is not too old for any use; reads nothing.
    pub fn cached(&self) -> Option<Arc<MapRead>> {
        let now = self.inner.clock.monotonic();
        self.inner.current.load_full().filter(|read| read.age(now) < self.inner.settings.age_max)
    }

    /// The map; read if none is cached or the cached one is too old.
    pub async fn get(&self) -> Result<Arc<MapRead>, MapReadError> {
        self.within(self.inner.settings.age_max).await
    }

    /// A map that is younger than this, and than [`MapSettings::age_max`].
    pub async fn within(&self, age_max: Duration) -> Result<Arc<MapRead>, MapReadError> {
        let now = self.inner.clock.monotonic();
        let age_max = age_max.min(self.inner.settings.age_max);
        let current = self.inner.current.load_full();
        let age = current.as_ref().map(|read| read.age(now));
        match (choose_read(age, age_max, &self.inner.settings), current) {
            (ReadChoice::Use, Some(read)) => Ok(read),
            (ReadChoice::UseAndRead, Some(read)) => {
                if self.recent_failure(now).is_none() {
                    // It goes on by itself.
                    drop(self.start_or_join());
                }
                Ok(read)
            }
            // What was asked for is younger than a read that begins now.
            _ => self.begun_after(now.saturating_sub(age_max)).await,
        }
    }

    /// A map whose read began at this instant of monotonic time or later: what a refused client needs. Any
    /// number of requests at one time make one read.
    pub async fn begun_after(&self, since: Duration) -> Result<Arc<MapRead>, MapReadError> {
        // A read that runs already may have begun before; one that follows it has not.
        for _ in 0..READS_JOINED_MAX {
            if let Some(read) = self.inner.current.load_full().filter(|read| read.read_since >= since) {
                return Ok(read);
            }
            if let Some(failure) = self.recent_failure(self.inner.clock.monotonic()) {
                return Err(failure);
            }
            let ended = || MapReadError::Ended { place: self.inner.home.place().to_owned() };
            let read = self.start_or_join().await.map_err(|_| ended())??;
            if read.read_since >= since {
                return Ok(read);
            }
        }
        let (place, read_for) = (self.inner.home.place().to_owned(), self.inner.settings.read_for_max);
        Err(MapReadError::TimedOut { place, read_for })
    }

    /// Looks into the map; what is not there is looked up once more in a map that is read anew, and then not
    /// again for [`MapSettings::negative_for`].
    pub(crate) async fn lookup<T>(
        &self,
        read: Arc<MapRead>,
        map: &str,
        key: &[KeyValue],
        look: impl Fn(&Arc<MapRead>) -> Result<T, LookupError>,
    ) -> Result<T, LookupFailure> {
        let error = match look(&read) {
            Ok(found) => return Ok(found),
            Err(error) if !error.may_change() => return Err(error.into()),
            Err(error) => error,
        };
        let negative_key = negative_key(&read, map, key);
        let now = self.inner.clock.monotonic();
        if self.inner.negative.lock().holds(read.catalog.epoch(), &negative_key, now) {
            return Err(error.into());
        }
        let newer = self.begun_after(now).await?;
        let found = look(&newer);
        if found.is_err() {
            let settings = &self.inner.settings;
            let until = self.inner.clock.monotonic() + settings.negative_for;
            let mut negative = self.inner.negative.lock();
            negative.put(newer.catalog.epoch(), negative_key, until, settings.negative_count_max);
        }
        Ok(found?)
    }

    fn recent_failure(&self, now: Duration) -> Option<MapReadError> {
        let reads = self.inner.reads.lock();
        let (failed_at, failure) = reads.failed.as_ref()?;
        let is_fresh = is_failure_fresh(Some(*failed_at), now, self.inner.settings.negative_for);
        is_fresh.then(|| failure.clone())
    }

    /// The read that runs, or a new one.
    fn start_or_join(&self) -> Shared<oneshot::Receiver<ReadOutcome>> {
        let mut reads = self.inner.reads.lock();
        if let Some(running) = reads.running.as_ref().filter(|running| running.peek().is_none()) {
            return running.clone();
        }
        let (sender, receiver) = oneshot::channel();
        let running = receiver.shared();
        reads.running = Some(running.clone());
        let now = self.inner.clock.monotonic();
        let wait = wait_before_read(reads.last_began, now, self.inner.settings.read_interval_min);
        drop(reads);
        let inner = self.inner.clone();
        let task = async move {
            if !wait.is_zero() {
                inner.clock.sleep(wait).await;
            }
            let outcome = inner.read().await;
            inner.finish(&outcome);
            // Without a receiver nothing waits for it any more.
            drop(sender.send(outcome));
        };
        self.inner.spawner.spawn("shard map", Box::pin(task));
        running
    }
}

/// Reads that one request waits for: one that runs already, one of its own, and one to spare.
const READS_JOINED_MAX: u32 = 3;

/// A key, or a map, that has no route.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupFailure {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error(transparent)]
    Map(#[from] MapReadError),
}

fn negative_key(read: &MapRead, map: &str, key: &[KeyValue]) -> NegativeKey {
    let encoded = read.map(map).ok().and_then(|there| there.key_type().encode(key).ok());
    (map.to_owned(), encoded.map(|encoded| encoded.as_bytes().to_vec()).unwrap_or_default())
}

impl Inner {
    async fn read(&self) -> ReadOutcome {
        let (read_at, read_since) = (self.clock.now(), self.clock.monotonic());
        self.reads.lock().last_began = Some(read_since);
        self.read_count.fetch_add(1, Ordering::Relaxed);
        let current = self.current.load_full();
        let reading = async {
            match &current {
                Some(current) => self.home.refresh(&current.catalog).await,
                None => self.home.load().await,
            }
        };
        let read_for = self.settings.read_for_max;
        let place = || self.home.place().to_owned();
        let catalog = tokio::select! {
            read = reading => read.map_err(|error| MapReadError::Home(Arc::new(error)))?,
            () = self.clock.sleep(read_for) => return Err(MapReadError::TimedOut { place: place(), read_for }),
        };
        if let Some(known) = current.as_ref().map(|current| &current.catalog) {
            if known.id() != catalog.id() {
                let (there, known) = (catalog.name().clone(), known.name().clone());
                return Err(MapReadError::OtherCatalog { place: place(), there, known });
            }
            if catalog.epoch() < known.epoch() {
                let (there, known) = (catalog.epoch(), known.epoch());
                return Err(MapReadError::WentBack { place: place(), there, known });
            }
        }
        Ok(Arc::new(MapRead { catalog, read_at, read_since }))
    }

    /// Reads follow each other, so none is stored over a later one.
    fn finish(&self, outcome: &ReadOutcome) {
        if let Ok(read) = outcome {
            self.current.store(Some(read.clone()));
        }
        let mut reads = self.reads.lock();
        reads.failed = outcome.as_ref().err().map(|error| (self.clock.monotonic(), error.clone()));
        reads.running = None;
    }
}
