//! A shard's rows, as movers reach them: through a gate, with pauses, and with shards that lose what they
//! acknowledged.
//!
//! Where the fence is a signature, a mover reads the claim, and its signature ends T after that: so an
//! operation that comes later is refused by the service, and one with another claim is not sent.

use crate::gate::{EXPIRES_AFTER, Gate, Late, failed};
use crate::setting::{Setting, SimShard};
use base::BoxFuture;
use shard_backend::{
    ActualSchema, Backend, BackendError, Batch, BatchBounds, Capabilities, FenceHold, Row, RowKey, Shardlet,
    TableSchema,
};
use shard_map::Epoch;
use shard_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) struct MoverRows {
    pub(crate) setting: Arc<Setting>,
    pub(crate) shard: Arc<SimShard>,
    pub(crate) gate: Arc<Gate>,
}

/// What of a table is changed.
#[derive(Clone)]
enum Change {
    Put(Vec<Row>),
    Remove(Vec<RowKey>),
}

/// A change that is on its way.
struct Sent {
    setting: Arc<Setting>,
    shard: Arc<SimShard>,
    table: TableSchema,
    shardlet: Shardlet,
    hold: FenceHold,
    change: Change,
    ends_at: Option<Duration>,
}

impl Sent {
    /// It arrives.
    async fn arrive(self) -> Result<(), BackendError> {
        let place = self.shard.rows.place();
        if self.ends_at.is_some_and(|ends_at| self.setting.clock.monotonic() >= ends_at) {
            return Err(StoreError::refused(place, "the signature has ended").into());
        }
        let (table, shardlet, hold) = (&self.table, &self.shardlet, self.hold);
        match &self.change {
            Change::Put(rows) => self.shard.rows.write(table, shardlet, hold, rows).await,
            Change::Remove(keys) => self.shard.rows.delete(table, shardlet, hold, keys).await,
        }
    }
}

impl MoverRows {
    /// What is sent; refused before, if the claim is another one.
    fn sent(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        hold: FenceHold,
        change: Change,
    ) -> Result<Sent, BackendError> {
        let mut ends_at = None;
        if self.shard.is_signed
            && let Some((map, mapping)) = shardlet.mapping()
        {
            let copy = self.shard.local.contents();
            let here = copy.as_ref().and_then(|copy| copy.mapping(map.name().as_str(), mapping));
            let claim = self.shard.rows.stored_claim(shardlet);
            hold.check(self.shard.rows.place(), map.name(), mapping, here, claim)?;
            ends_at = Some(self.setting.clock.monotonic() + EXPIRES_AFTER);
        }
        Ok(Sent {
            setting: self.setting.clone(),
            shard: self.shard.clone(),
            table: table.clone(),
            shardlet: shardlet.clone(),
            hold,
            change,
            ends_at,
        })
    }

    /// The shard loses one row of a batch now and then, and acknowledges it.
    fn lose(&self, change: Change) -> Change {
        fn without_one<T>(mut of: Vec<T>, at: u64) -> Vec<T> {
            of.remove((at % of.len() as u64) as usize);
            of
        }
        let count = match &change {
            Change::Put(rows) => rows.len(),
            Change::Remove(keys) => keys.len(),
        };
        if count == 0 || !self.setting.is_one_in(30) {
            return change;
        }
        self.setting.counts.lossy.fetch_add(1, Ordering::Relaxed);
        let at = self.setting.below(64);
        match change {
            Change::Put(rows) => Change::Put(without_one(rows, at)),
            Change::Remove(keys) => Change::Remove(without_one(keys, at)),
        }
    }

    async fn change(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        hold: FenceHold,
        change: Change,
    ) -> Result<(), BackendError> {
        if self.setting.is_one_in(50) {
            // A mover that stopped between its decision and this.
            self.setting.clock.sleep(Duration::from_millis(self.setting.below(40_000))).await;
        }
        let change = self.lose(change);
        let late = || {
            let sent = self.sent(table, shardlet, hold, change.clone()).ok()?;
            let late: Late = Box::new(move || Box::pin(async move { drop(sent.arrive().await) }));
            Some(late)
        };
        let operation = async {
            let sent = self.sent(table, shardlet, hold, change.clone())?;
            if self.setting.is_one_in(50) {
                self.setting.clock.sleep(Duration::from_millis(self.setting.below(40_000))).await;
            }
            sent.arrive().await
        };
        self.gate.pass(late, operation, || failed().into()).await
    }
}

impl Backend for MoverRows {
    fn place(&self) -> &str {
        self.shard.rows.place()
    }
    fn capabilities(&self) -> Capabilities {
        self.shard.rows.capabilities()
    }
    fn actual_schema(&self) -> BoxFuture<'_, Result<ActualSchema, BackendError>> {
        Box::pin(self.gate.pass(|| None, self.shard.rows.actual_schema(), || failed().into()))
    }
    fn claim<'a>(&'a self, shardlet: &'a Shardlet, claim: Epoch) -> BoxFuture<'a, Result<(), BackendError>> {
        let (rows, owned) = (self.shard.rows.clone(), shardlet.clone());
        let late = move || {
            let late: Late = Box::new(move || Box::pin(async move { drop(rows.claim(&owned, claim).await) }));
            Some(late)
        };
        Box::pin(self.gate.pass(late, self.shard.rows.claim(shardlet, claim), || failed().into()))
    }
    fn release<'a>(
        &'a self,
        shardlet: &'a Shardlet,
        claim: Epoch,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        let (rows, owned) = (self.shard.rows.clone(), shardlet.clone());
        let late = move || {
            let late: Late =
                Box::new(move || Box::pin(async move { drop(rows.release(&owned, claim).await) }));
            Some(late)
        };
        Box::pin(self.gate.pass(late, self.shard.rows.release(shardlet, claim), || failed().into()))
    }
    fn scan<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        after: Option<&'a RowKey>,
        bounds: BatchBounds,
    ) -> BoxFuture<'a, Result<Batch, BackendError>> {
        let scan = self.shard.rows.scan(table, shardlet, after, bounds);
        Box::pin(self.gate.pass(|| None, scan, || failed().into()))
    }
    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>> {
        Box::pin(self.gate.pass(|| None, self.shard.rows.count(table, shardlet), || failed().into()))
    }
    fn write<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        rows: &'a [Row],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.change(table, shardlet, hold, Change::Put(rows.to_vec())))
    }
    fn delete<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        keys: &'a [RowKey],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.change(table, shardlet, hold, Change::Remove(keys.to_vec())))
    }
}
