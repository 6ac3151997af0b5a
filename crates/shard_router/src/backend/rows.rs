//! Rows of declared tables in any [`Backend`]: in memory, and each that has a driver.
//!
//! What always holds: rows of another mapping than the key's are refused by the backend before anything is
//! written.

use crate::fan_out::part::{PartRefusal, ShardPart};
use crate::fenced::error::RouterError;
use crate::fenced::keys::Keys;
use crate::fenced::routed::Routed;
use crate::fenced::router::Router;
use crate::fenced::work::{AttemptError, ShardWork};
use crate::pool::connector::{ConnectError, ShardConnector};
use crate::pool::credentials::ShardCredentials;
use base::BoxFuture;
use shard_backend::{Backend, BackendError, Capabilities, FenceHold, Row, RowKey, Shardlet, TableSchema};
use shard_map::{KeyValue, Name, Shard};
use shard_store::{Access, LocalStore};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Backends that are there already, by their shards.
pub struct RowsConnector {
    capabilities: Capabilities,
    backends: BTreeMap<Name, Arc<dyn Backend>>,
    copies: BTreeMap<Name, Arc<dyn LocalStore>>,
}

impl RowsConnector {
    /// Of backends of one kind.
    pub fn new(capabilities: Capabilities, backends: BTreeMap<Name, Arc<dyn Backend>>) -> Self {
        RowsConnector { capabilities, backends, copies: BTreeMap::new() }
    }

    /// With the shards' copies of the map, by which answers of all shards are checked; shards with a fence
    /// that holds need theirs.
    pub fn with_copies(mut self, copies: BTreeMap<Name, Arc<dyn LocalStore>>) -> Self {
        self.copies = copies;
        self
    }
}

impl ShardConnector for RowsConnector {
    type Connection = Arc<dyn Backend>;

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn connect<'a>(
        &'a self,
        shard: &'a Shard,
        _credentials: &'a ShardCredentials,
    ) -> BoxFuture<'a, Result<Self::Connection, ConnectError>> {
        let backend = self.backends.get(&shard.name).cloned();
        Box::pin(async move { backend.ok_or_else(|| ConnectError::new("it has no backend here")) })
    }

    fn check_part<'a>(
        &'a self,
        _backend: &'a mut Self::Connection,
        part: &'a ShardPart,
        now: Duration,
    ) -> BoxFuture<'a, Result<(), PartRefusal>> {
        Box::pin(async move {
            let Some(copy) = self.copies.get(&part.shard().name) else {
                return part.check_unasked(self.capabilities.fence, now, self.map_for_max());
            };
            let stored = copy.read().await.map_err(|error| PartRefusal::Unread(error.to_string()))?;
            part.check_copy(stored.as_ref().map(|stored| &stored.copy))
        })
    }
}

/// What is done with rows.
enum RowChanges<'a> {
    Write(&'a [Row]),
    Delete(&'a [RowKey]),
}

struct ChangeRows<'a> {
    table: &'a TableSchema,
    changes: RowChanges<'a>,
}

impl ShardWork<Arc<dyn Backend>> for ChangeRows<'_> {
    type Output = ();
    type Error = BackendError;

    fn attempt<'a>(
        &'a mut self,
        backend: &'a mut Arc<dyn Backend>,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<(), AttemptError<BackendError>>> {
        Box::pin(async move {
            // One key has one mapping, and the map that has routed it has the mapping.
            let Some(mapping) = routed.mappings().first() else { return Ok(()) };
            let Some(shardlet) = Shardlet::new(routed.map().clone(), mapping.mapping.clone()) else {
                return Ok(());
            };
            let hold = FenceHold::Open(mapping.since);
            let done = match self.changes {
                RowChanges::Write(rows) => backend.write(self.table, &shardlet, hold, rows).await,
                RowChanges::Delete(keys) => backend.delete(self.table, &shardlet, hold, keys).await,
            };
            done.map_err(|error| match error {
                BackendError::Fence { refusal, .. } => AttemptError::Refused(refusal),
                error if error.may_be_done() => AttemptError::MayBeDone(error),
                error => AttemptError::Failed(error),
            })
        })
    }
}

impl Router<RowsConnector> {
    /// Writes rows of the mapping that has the key, in one transaction if the backend has such.
    pub async fn write_rows(
        &self,
        map: &str,
        key: &[KeyValue],
        table: &TableSchema,
        rows: &[Row],
    ) -> Result<(), RouterError<BackendError>> {
        let mut work = ChangeRows { table, changes: RowChanges::Write(rows) };
        self.run(Keys::new(map, &[key]), Access::Write, &mut work).await
    }

    /// Deletes rows of the mapping that has the key.
    pub async fn delete_rows(
        &self,
        map: &str,
        key: &[KeyValue],
        table: &TableSchema,
        keys: &[RowKey],
    ) -> Result<(), RouterError<BackendError>> {
        let mut work = ChangeRows { table, changes: RowChanges::Delete(keys) };
        self.run(Keys::new(map, &[key]), Access::Write, &mut work).await
    }
}
