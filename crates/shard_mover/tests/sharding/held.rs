//! A shard whose fence is held until the commit, as one client reaches it: with pauses, and with answers that
//! are lost while the write is still under way.

use crate::faults::Fault;
use crate::setting::{Setting, SimShard};
use base::BoxFuture;
use shard_backend::{
    ActualSchema, Backend, BackendError, Batch, BatchBounds, Capabilities, FenceHold, Row, RowKey, Shardlet,
    TableSchema,
};
use shard_map::{Epoch, State};
use shard_store::StoreError;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct HeldRows {
    pub(crate) setting: Arc<Setting>,
    pub(crate) shard: Arc<SimShard>,
}

/// A write's rows, or a delete's keys.
pub(crate) type RowChange = Result<Vec<Row>, Vec<RowKey>>;

impl HeldRows {
    /// Any hold that passes now: what no fence at all is.
    fn passing(&self, shardlet: &Shardlet) -> FenceHold {
        let copy = self.shard.local.contents();
        let here = shardlet
            .mapping()
            .and_then(|(map, mapping)| copy.as_ref()?.mapping(map.name().as_str(), mapping));
        match here {
            Some(here) if here.state == State::Online => FenceHold::Open(here.since),
            // After a release none does.
            _ => FenceHold::Closed(
                self.shard.rows.stored_claim(shardlet).map_or(Epoch(0), |claim| claim.epoch),
            ),
        }
    }

    fn check(&self, shardlet: &Shardlet, hold: FenceHold) -> Result<(), BackendError> {
        let copy = self.shard.local.contents();
        let Some((map, mapping)) = shardlet.mapping() else { return Ok(()) };
        let here = copy.as_ref().and_then(|copy| copy.mapping(map.name().as_str(), mapping));
        hold.check(self.place(), map.name(), mapping, here, None)
    }

    /// The transaction: the fence and the write at one instant.
    async fn commit(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        hold: FenceHold,
        change: &RowChange,
    ) -> Result<(), BackendError> {
        let hold = match self.setting.fault {
            Some(Fault::NoFence | Fault::FenceWithoutLock) => self.passing(shardlet),
            _ => hold,
        };
        match change {
            Ok(rows) => self.shard.rows.write(table, shardlet, hold, rows).await,
            Err(keys) => self.shard.rows.delete(table, shardlet, hold, keys).await,
        }
    }

    async fn send(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        hold: FenceHold,
        change: RowChange,
    ) -> Result<(), BackendError> {
        let setting = &self.setting;
        setting.pause().await;
        if setting.fault == Some(Fault::FenceWithoutLock) {
            self.check(shardlet, hold)?;
            setting.pause().await;
        }
        if setting.is_one_in(25) {
            let (rows, table, shardlet) = (self.clone(), table.clone(), shardlet.clone());
            setting.spawner.spawn(
                "late write",
                Box::pin(async move {
                    rows.setting.pause().await;
                    drop(rows.commit(&table, &shardlet, hold, &change).await);
                }),
            );
            return Err(StoreError::uncertain(self.place(), "the answer was lost").into());
        }
        self.commit(table, shardlet, hold, &change).await
    }
}

impl Backend for HeldRows {
    fn place(&self) -> &str {
        self.shard.rows.place()
    }
    fn capabilities(&self) -> Capabilities {
        self.shard.rows.capabilities()
    }
    fn actual_schema(&self) -> BoxFuture<'_, Result<ActualSchema, BackendError>> {
        self.shard.rows.actual_schema()
    }
    fn claim<'a>(&'a self, shardlet: &'a Shardlet, claim: Epoch) -> BoxFuture<'a, Result<(), BackendError>> {
        self.shard.rows.claim(shardlet, claim)
    }
    fn release<'a>(
        &'a self,
        shardlet: &'a Shardlet,
        claim: Epoch,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        self.shard.rows.release(shardlet, claim)
    }
    fn scan<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        after: Option<&'a RowKey>,
        bounds: BatchBounds,
    ) -> BoxFuture<'a, Result<Batch, BackendError>> {
        self.shard.rows.scan(table, shardlet, after, bounds)
    }
    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>> {
        self.shard.rows.count(table, shardlet)
    }
    fn write<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        rows: &'a [Row],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.send(table, shardlet, hold, Ok(rows.to_vec())))
    }
    fn delete<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        keys: &'a [RowKey],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.send(table, shardlet, hold, Err(keys.to_vec())))
    }
}
