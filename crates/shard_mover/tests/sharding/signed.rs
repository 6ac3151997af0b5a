//! A shard whose fence is a signature that ends, as one client reaches it: the service looks at nothing but the
//! signature's end when a request arrives, for reads as for writes.

use crate::faults::Fault;
use crate::held::RowChange;
use crate::ledger::RowId;
use crate::setting::{Setting, SimShard};
use base::{BoxFuture, Clock, Ticks};
use shard_backend::{Backend, BackendError, Capabilities, FenceHold, Shardlet, TableSchema};
use shard_map::{Name, Shard};
use shard_router::{
    AttemptError, ConnectError, MAP_FOR_MAX, Routed, ShardConnector, ShardCredentials, ShardWork,
};
use shard_store::StoreError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One client's way to all such shards.
pub(crate) struct SignedConnector {
    pub(crate) setting: Arc<Setting>,
    /// The client's clock, which may be wrong.
    pub(crate) clock: Arc<dyn Clock>,
}

#[derive(Clone)]
pub(crate) struct SignedRows {
    setting: Arc<Setting>,
    clock: Arc<dyn Clock>,
    shard: Arc<SimShard>,
}

impl ShardConnector for SignedConnector {
    type Connection = SignedRows;

    fn capabilities(&self) -> Capabilities {
        Capabilities::STORAGE_TABLES
    }

    fn connect<'a>(
        &'a self,
        shard: &'a Shard,
        _credentials: &'a ShardCredentials,
    ) -> BoxFuture<'a, Result<SignedRows, ConnectError>> {
        let found = self.setting.shards.get(&shard.name).filter(|shard| shard.is_signed).cloned();
        let (setting, clock) = (self.setting.clone(), self.clock.clone());
        Box::pin(async move {
            let shard = found.ok_or_else(|| ConnectError::new("it is a shard of another kind"))?;
            Ok(SignedRows { setting, clock, shard })
        })
    }
}

impl SignedRows {
    pub(crate) fn shard_name(&self) -> Name {
        crate::setting::name(self.shard.rows.place())
    }

    /// Until when a request is signed that is made now.
    async fn sign<E>(&self, routed: &Routed) -> Result<Ticks, AttemptError<E>> {
        self.setting.pause().await;
        let now = self.clock.now();
        let from = match self.setting.fault {
            Some(Fault::SignatureOutlivesMap) => now,
            _ => routed.map_read_at(),
        };
        let ends_at = from.plus(MAP_FOR_MAX);
        if now >= ends_at { Err(AttemptError::MapTooOld) } else { Ok(ends_at) }
    }

    /// The service's own check, when a request arrives.
    fn has_ended(&self, ends_at: Ticks) -> bool {
        self.setting.clock.now() >= ends_at
    }

    /// All rows, by a request that is signed.
    pub(crate) async fn read<E>(&self, routed: &Routed) -> Result<BTreeMap<RowId, String>, AttemptError<E>> {
        let ends_at = self.sign(routed).await?;
        self.setting.pause().await;
        if self.has_ended(ends_at) { Err(AttemptError::MapTooOld) } else { Ok(self.shard.contents()) }
    }

    async fn arrive(
        &self,
        ends_at: Ticks,
        (table, shardlet, hold): (&TableSchema, &Shardlet, FenceHold),
        change: &RowChange,
    ) -> Result<(), AttemptError<BackendError>> {
        if self.has_ended(ends_at) {
            return Err(AttemptError::MapTooOld);
        }
        let done = match change {
            Ok(rows) => self.shard.rows.write(table, shardlet, hold, rows).await,
            Err(keys) => self.shard.rows.delete(table, shardlet, hold, keys).await,
        };
        done.map_err(|error| match error.may_be_done() {
            true => AttemptError::MayBeDone(error),
            false => AttemptError::Failed(error),
        })
    }
}

/// Changes a row.
pub(crate) struct SignedChange {
    pub(crate) table: TableSchema,
    pub(crate) change: RowChange,
}

impl ShardWork<SignedRows> for SignedChange {
    type Output = ();
    type Error = BackendError;

    fn attempt<'a>(
        &'a mut self,
        rows: &'a mut SignedRows,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<(), AttemptError<BackendError>>> {
        Box::pin(async move {
            let mapping = routed.mappings().first().expect("one");
            let shardlet = Shardlet::new(routed.map().clone(), mapping.mapping.clone()).expect("it");
            let hold = FenceHold::Open(mapping.since);
            let ends_at = rows.sign(routed).await?;
            let setting = rows.setting.clone();
            if setting.is_one_in(25) {
                let (rows, table, change) = (rows.clone(), self.table.clone(), self.change.clone());
                setting.spawner.spawn(
                    "late write",
                    Box::pin(async move {
                        rows.setting.pause().await;
                        drop(rows.arrive(ends_at, (&table, &shardlet, hold), &change).await);
                    }),
                );
                let place = setting.shards[&routed.shard().name].rows.place();
                return Err(AttemptError::MayBeDone(
                    StoreError::uncertain(place, "the answer was lost").into(),
                ));
            }
            setting.pause().await;
            rows.arrive(ends_at, (&self.table, &shardlet, hold), &self.change).await
        })
    }
}
