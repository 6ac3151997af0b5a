//! A gate that each operation of a mover passes: it kills the mover before, in or after it.
//!
//! Operations differ by what they do, where, in which state of the move, and how many of the kind
//! the mover did before, in powers of four. Each is the end of a mover once a way. What always holds: so the
//! number of kills is bounded, and a move comes to its end.

use base::{BoxFuture, Random};
use parking_lot::Mutex;
use shard_backend::{
    ActualSchema, Backend, BackendError, Batch, BatchBounds, Capabilities, FenceHold, Row, RowKey, Shardlet,
    TableSchema,
};
use shard_map::Epoch;
use shard_store::{LocalCopy, LocalStore, Put, Record, Records, Replaced, Revision, StoreError, StoredCopy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Before,
    In,
    After,
}

/// An operation that is killed in its middle has been under way for so long, at most.
const IN_FOR_MAX: Duration = Duration::from_millis(4);

pub(crate) struct Gate {
    random: Arc<dyn Random>,
    state: Mutex<State>,
    killed: tokio::sync::Notify,
}

#[derive(Default)]
struct State {
    move_state: String,
    /// Of this mover.
    counts: BTreeMap<String, u64>,
    kills: BTreeSet<(String, Way)>,
    is_killed: bool,
    is_open: bool,
}

impl Gate {
    pub(crate) fn new(random: Arc<dyn Random>) -> Arc<Self> {
        let killed = tokio::sync::Notify::new();
        Arc::new(Gate { random, state: Mutex::default(), killed })
    }

    /// A new mover begins.
    pub(crate) fn begin(&self) {
        let mut state = self.state.lock();
        state.counts.clear();
        state.is_killed = false;
    }

    /// A gate at which no mover is killed.
    pub(crate) fn opened(random: Arc<dyn Random>) -> Arc<Self> {
        let gate = Gate::new(random);
        gate.state.lock().is_open = true;
        gate
    }

    /// Completes when the mover is to be dropped.
    pub(crate) async fn killed(&self) {
        self.killed.notified().await;
    }

    pub(crate) fn kill_count(&self) -> usize {
        self.state.lock().kills.len()
    }

    pub(crate) fn move_state(&self) -> String {
        self.state.lock().move_state.clone()
    }

    fn saw_state(&self, record: &str) {
        let state = record.split_once("\"state\":\"").and_then(|(_, rest)| rest.split_once('"'));
        if let Some((state, _)) = state {
            self.state.lock().move_state = state.to_owned();
        }
    }

    /// What is to happen at an operation.
    fn choose(&self, what: &str, ways: &[Way]) -> Option<Way> {
        let mut state = self.state.lock();
        if state.is_killed || state.is_open {
            return None;
        }
        let count = state.counts.entry(what.to_owned()).or_insert(0);
        *count += 1;
        let label = format!("{what} in {} #{}", state.move_state, state.counts[what].ilog(4));
        let way = ways.iter().copied().find(|way| !state.kills.contains(&(label.clone(), *way)))?;
        state.kills.insert((label, way));
        state.is_killed = true;
        Some(way)
    }

    async fn pass<T>(&self, what: &str, ways: &[Way], operation: impl Future<Output = T>) -> T {
        match self.choose(what, ways) {
            None => return operation.await,
            Some(Way::Before) => {}
            Some(Way::In) => {
                let micros = self.random.next_u64() % IN_FOR_MAX.as_micros() as u64;
                drop(tokio::time::timeout(Duration::from_micros(micros), operation).await);
            }
            Some(Way::After) => drop(operation.await),
        }
        self.killed.notify_one();
        std::future::pending().await
    }
}

/// Of an operation in memory, which has no middle.
const AT_ONCE: [Way; 2] = [Way::Before, Way::After];
const SENT: [Way; 3] = [Way::Before, Way::In, Way::After];

pub(crate) struct GatedRecords(pub(crate) Arc<dyn Records>, pub(crate) Arc<Gate>);

impl Records for GatedRecords {
    fn place(&self) -> &str {
        self.0.place()
    }
    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(self.1.pass("put", &AT_ONCE, async move {
            let put = self.0.put(key, value).await;
            self.1.saw_state(value);
            put
        }))
    }
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(self.1.pass("get", &AT_ONCE[..1], self.0.get(key)))
    }
    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(self.1.pass("list", &AT_ONCE[..1], self.0.list(from, to, count_max)))
    }
    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.1.pass("remove", &AT_ONCE, self.0.remove(key)))
    }
}

/// A shard's copy, and the shard's name.
pub(crate) struct GatedLocal(pub(crate) Arc<dyn LocalStore>, pub(crate) Arc<Gate>, pub(crate) String);

impl LocalStore for GatedLocal {
    fn place(&self) -> &str {
        self.0.place()
    }
    fn read(&self) -> BoxFuture<'_, Result<Option<StoredCopy>, StoreError>> {
        let what = format!("read copy of {}", self.2);
        Box::pin(async move { self.1.pass(&what, &SENT[..1], self.0.read()).await })
    }
    fn replace<'a>(
        &'a self,
        expected: Option<&'a Revision>,
        copy: Option<&'a LocalCopy>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        let what = format!("replace copy of {}", self.2);
        Box::pin(async move { self.1.pass(&what, &SENT, self.0.replace(expected, copy)).await })
    }
}

/// A shard's rows, and the shard's name.
pub(crate) struct GatedBackend(pub(crate) Arc<dyn Backend>, pub(crate) Arc<Gate>, pub(crate) String);

impl GatedBackend {
    async fn pass<T>(&self, what: &str, ways: &[Way], operation: impl Future<Output = T>) -> T {
        self.1.pass(&format!("{what} {}", self.2), ways, operation).await
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
        self.0.actual_schema()
    }
    fn claim<'a>(&'a self, shardlet: &'a Shardlet, claim: Epoch) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.pass("claim", &SENT, self.0.claim(shardlet, claim)))
    }
    fn release<'a>(
        &'a self,
        shardlet: &'a Shardlet,
        claim: Epoch,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.pass("release", &SENT, self.0.release(shardlet, claim)))
    }
    fn scan<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        after: Option<&'a RowKey>,
        bounds: BatchBounds,
    ) -> BoxFuture<'a, Result<Batch, BackendError>> {
        Box::pin(self.pass("scan", &SENT[..1], self.0.scan(table, shardlet, after, bounds)))
    }
    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>> {
        Box::pin(self.pass("count", &SENT[..1], self.0.count(table, shardlet)))
    }
    fn write<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        rows: &'a [Row],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.pass("write", &SENT, self.0.write(table, shardlet, hold, rows)))
    }
    fn delete<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        keys: &'a [RowKey],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.pass("delete", &SENT, self.0.delete(table, shardlet, hold, keys)))
    }
}
