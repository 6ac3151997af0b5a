//! A gate that each operation of a mover passes: it counts them, and at one of them kills the mover or lets
//! the operation fail; an operation that was on its way when its mover was killed may arrive late.

use base::{BoxFuture, Clock, Random};
use parking_lot::Mutex;
use shard_backend::{
    ActualSchema, Backend, BackendError, Batch, BatchBounds, Capabilities, Fence, FenceHold, MemoryBackend,
    Row, RowKey, Shardlet, TableSchema,
};
use shard_map::Epoch;
use shard_store::{
    LocalCopy, LocalStore, MemoryLocal, MemoryRecords, Put, Record, Records, Replaced, Revision, StoreError,
    StoredCopy,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long signatures for writes hold.
pub(crate) const EXPIRES_AFTER: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    KillBefore,
    KillAfter,
    FailBefore,
    FailAfter,
    /// The mover is killed, and the operation arrives later.
    Late,
}

/// An operation that arrives late.
pub(crate) type Late = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

pub(crate) struct Gate {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    passed: AtomicU64,
    /// At which operation what happens.
    fault: Option<(u64, Kind)>,
    /// Operations take up to so many microseconds.
    slow_us: u64,
    killed: tokio::sync::Notify,
    /// An operation of a former mover, and after how many operations it arrives.
    late: Mutex<Option<(u64, Late)>>,
    left_behind: Mutex<Option<Late>>,
    /// A shard one of whose rows can't be read.
    unreadable: Mutex<Option<String>>,
}

impl Gate {
    pub(crate) fn new(
        (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
        fault: Option<(u64, Kind)>,
        slow_us: u64,
    ) -> Arc<Self> {
        Arc::new(Gate {
            clock,
            random,
            passed: AtomicU64::new(0),
            fault,
            slow_us,
            killed: tokio::sync::Notify::new(),
            late: Mutex::default(),
            left_behind: Mutex::default(),
            unreadable: Mutex::default(),
        })
    }

    /// Completes when the mover is to be killed.
    pub(crate) async fn killed(&self) {
        self.killed.notified().await;
    }

    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// What was on its way when the mover was killed.
    pub(crate) fn left_behind(&self) -> Option<Late> {
        self.left_behind.lock().take()
    }

    pub(crate) fn make_unreadable(&self, shard: Option<&str>) {
        *self.unreadable.lock() = shard.map(str::to_owned);
    }

    pub(crate) fn arrive_after(&self, operations: u64, late: Late) {
        *self.late.lock() = Some((operations, late));
    }

    /// Passes an operation, or what is planned for its number.
    pub(crate) async fn pass<T, E>(
        &self,
        late: impl FnOnce() -> Option<Late>,
        operation: impl Future<Output = Result<T, E>>,
        failed: impl Fn() -> E,
    ) -> Result<T, E> {
        if self.slow_us > 0 {
            self.clock.sleep(Duration::from_micros(self.random.next_u64() % self.slow_us)).await;
        }
        let number = self.passed.fetch_add(1, Ordering::Relaxed);
        let due = {
            let mut waiting = self.late.lock();
            if waiting.as_ref().is_some_and(|(after, _)| number >= *after) { waiting.take() } else { None }
        };
        if let Some((_, late)) = due {
            late().await;
        }
        let fault = self.fault.filter(|(at, _)| *at == number).map(|(_, kind)| kind);
        match fault {
            None => operation.await,
            Some(Kind::FailBefore) => Err(failed()),
            Some(Kind::FailAfter) => operation.await.and(Err(failed())),
            Some(kind) => {
                match kind {
                    Kind::KillAfter => drop(operation.await),
                    Kind::Late => *self.left_behind.lock() = late(),
                    _ => {}
                }
                self.killed.notify_one();
                std::future::pending().await
            }
        }
    }
}

/// The failure of an operation that the gate lets fail.
pub(crate) fn failed() -> StoreError {
    StoreError::uncertain("the gate", "it failed on purpose")
}

pub(crate) struct GatedRecords(pub(crate) Arc<MemoryRecords>, pub(crate) Arc<Gate>);

impl Records for GatedRecords {
    fn place(&self) -> &str {
        self.0.place()
    }
    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        let (records, owned) = (self.0.clone(), (key.to_owned(), value.to_owned()));
        let late = || {
            let late: Late =
                Box::new(move || Box::pin(async move { drop(records.put(&owned.0, &owned.1).await) }));
            Some(late)
        };
        Box::pin(self.1.pass(late, self.0.put(key, value), failed))
    }
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(self.1.pass(|| None, self.0.get(key), failed))
    }
    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(self.1.pass(|| None, self.0.list(from, to, count_max), failed))
    }
    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.1.pass(|| None, self.0.remove(key), failed))
    }
}

pub(crate) struct GatedLocal(pub(crate) Arc<MemoryLocal>, pub(crate) Arc<Gate>);

impl LocalStore for GatedLocal {
    fn place(&self) -> &str {
        self.0.place()
    }
    fn read(&self) -> BoxFuture<'_, Result<Option<StoredCopy>, StoreError>> {
        Box::pin(self.1.pass(|| None, self.0.read(), failed))
    }
    fn replace<'a>(
        &'a self,
        expected: Option<&'a Revision>,
        copy: Option<&'a LocalCopy>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        let (local, owned) = (self.0.clone(), (expected.cloned(), copy.cloned()));
        let late = || {
            let late: Late = Box::new(move || {
                Box::pin(async move { drop(local.replace(owned.0.as_ref(), owned.1.as_ref()).await) })
            });
            Some(late)
        };
        Box::pin(self.1.pass(late, self.0.replace(expected, copy), failed))
    }
}

pub(crate) struct GatedBackend(pub(crate) Arc<MemoryBackend>, pub(crate) Arc<Gate>);

impl GatedBackend {
    /// A write that arrives late; a signature has ended by then, if the backend has no other fence.
    fn late(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        hold: FenceHold,
        change: Result<Vec<Row>, Vec<RowKey>>,
    ) -> Late {
        let (backend, clock, table, shardlet) =
            (self.0.clone(), self.1.clock.clone(), table.clone(), shardlet.clone());
        let ends_at = clock.monotonic() + EXPIRES_AFTER;
        Box::new(move || {
            Box::pin(async move {
                if backend.capabilities().fence == Fence::Expires && clock.monotonic() > ends_at {
                    return;
                }
                drop(match change {
                    Ok(rows) => backend.write(&table, &shardlet, hold, &rows).await,
                    Err(keys) => backend.delete(&table, &shardlet, hold, &keys).await,
                });
            })
        })
    }
}

impl Backend for GatedBackend {
    fn place(&self) -> &str {
        self.0.place()
    }
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn actual_schema(&self) -> BoxFuture<'_, Result<ActualSchema, BackendError>> {
        Box::pin(self.1.pass(|| None, self.0.actual_schema(), || failed().into()))
    }
    fn claim<'a>(&'a self, shardlet: &'a Shardlet, claim: Epoch) -> BoxFuture<'a, Result<(), BackendError>> {
        let (backend, owned) = (self.0.clone(), shardlet.clone());
        let late = move || {
            let late: Late =
                Box::new(move || Box::pin(async move { drop(backend.claim(&owned, claim).await) }));
            Some(late)
        };
        Box::pin(self.1.pass(late, self.0.claim(shardlet, claim), || failed().into()))
    }
    fn release<'a>(
        &'a self,
        shardlet: &'a Shardlet,
        claim: Epoch,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        let (backend, owned) = (self.0.clone(), shardlet.clone());
        let late = move || {
            let late: Late =
                Box::new(move || Box::pin(async move { drop(backend.release(&owned, claim).await) }));
            Some(late)
        };
        Box::pin(self.1.pass(late, self.0.release(shardlet, claim), || failed().into()))
    }
    fn scan<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        after: Option<&'a RowKey>,
        bounds: BatchBounds,
    ) -> BoxFuture<'a, Result<Batch, BackendError>> {
        let is_unreadable = self.1.unreadable.lock().as_deref() == Some(self.0.place());
        let scan = async move {
            if is_unreadable && table.name() == "notes" {
                let (place, table) = (self.0.place().to_owned(), table.name().to_owned());
                let (column, what) = ("text".to_owned(), "no text, on purpose".to_owned());
                return Err(BackendError::Value { place, table, column, what });
            }
            self.0.scan(table, shardlet, after, bounds).await
        };
        Box::pin(self.1.pass(|| None, scan, || failed().into()))
    }
    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>> {
        Box::pin(self.1.pass(|| None, self.0.count(table, shardlet), || failed().into()))
    }
    fn write<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        rows: &'a [Row],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        let late = move || Some(self.late(table, shardlet, hold, Ok(rows.to_vec())));
        Box::pin(self.1.pass(late, self.0.write(table, shardlet, hold, rows), || failed().into()))
    }
    fn delete<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        keys: &'a [RowKey],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        let late = move || Some(self.late(table, shardlet, hold, Err(keys.to_vec())));
        Box::pin(self.1.pass(late, self.0.delete(table, shardlet, hold, keys), || failed().into()))
    }
}
