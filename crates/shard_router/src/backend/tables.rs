//! Shards that are storage accounts: groups of entities, and reads, of one partition of a table.
//!
//! An account has no transaction over partitions, so no fence there holds until a commit. Each request is
//! signed with a signature that is for its partition only and **ends at most T after the read of the map
//! began** that it was routed by; T is [`crate::MAP_FOR_MAX`]. So the service itself refuses what comes
//! later, however long this process was stopped before it sent, and a move waits T and the clocks' bound.
//!
//! What always holds: an account's key signs nothing else; the end of a signature depends on the read of the
//! map, not on when it is made; with a map that is too old nothing is sent.

use crate::fenced::error::RouterError;
use crate::fenced::keys::Keys;
use crate::fenced::routed::Routed;
use crate::fenced::router::Router;
use crate::fenced::work::{AttemptError, ShardWork};
use crate::pool::connector::{ConnectError, MAP_FOR_MAX, ShardConnector};
use crate::pool::credentials::ShardCredentials;
use base::{BoxFuture, Ticks};
use shard_backend::Capabilities;
use shard_map::{KeyValue, Shard};
use shard_store::Access;
use std::time::Duration;
use storage_client::{
    AccountAddress, AccountKey, Credentials, Entity, Error, GroupOperation, Service, Settings,
    StorageAccount, Surroundings, TableClient, TableSas,
};

/// What a signature for a group, and one for a read, allows.
const GROUP_PERMISSIONS: &str = "raud";
const READ_PERMISSIONS: &str = "r";

/// Opens storage accounts: a shard's location is the address of its tables, its credentials are the account's
/// name and key.
pub struct TablesConnector {
    settings: Settings,
    surroundings: Surroundings,
    signed_for: Duration,
}

impl TablesConnector {
    /// With signatures that end T ([`MAP_FOR_MAX`]) after the map's read.
    pub fn new(settings: Settings, surroundings: Surroundings) -> Self {
        TablesConnector { settings, surroundings, signed_for: MAP_FOR_MAX }
    }

    /// The same with a shorter T; moves must know the longest of all clients.
    pub fn signed_for(mut self, signed_for: Duration) -> Self {
        self.signed_for = signed_for.min(MAP_FOR_MAX);
        self
    }
}

/// An account. Its own connections are pooled below it.
pub struct TablesConnection {
    /// Without credentials.
    account: StorageAccount,
    name: String,
    key: AccountKey,
    surroundings: Surroundings,
    signed_for: Duration,
}

/// Why an operation on a table failed.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// The service, or the way to it.
    #[error(transparent)]
    Storage(#[from] Error),
    /// An operation of another partition than the group's.
    #[error("operation {index} is of another partition than the group; a group is of one partition")]
    OtherPartition {
        /// Its number, from 0.
        index: usize,
    },
}

impl ShardConnector for TablesConnector {
    type Connection = TablesConnection;

    fn capabilities(&self) -> Capabilities {
        Capabilities::STORAGE_TABLES
    }

    fn map_for_max(&self) -> Duration {
        self.signed_for
    }

    fn connect<'a>(
        &'a self,
        shard: &'a Shard,
        credentials: &'a ShardCredentials,
    ) -> BoxFuture<'a, Result<TablesConnection, ConnectError>> {
        Box::pin(async move {
            let name = credentials.user.clone();
            let key = AccountKey::from_base64(&credentials.secret)
                .map_err(|why| ConnectError(format!("the account's key can't be used: {why}")))?;
            let address = AccountAddress::of(&name, Credentials::Anonymous);
            let address =
                address.with_endpoint(Service::Table, &shard.location).map_err(ConnectError::new)?;
            // A secondary may lag behind what was written, for longer than a move.
            let settings = Settings { reads_secondary: false, ..self.settings.clone() };
            let account = StorageAccount::new(address, settings, self.surroundings.clone());
            let (surroundings, signed_for) = (self.surroundings.clone(), self.signed_for);
            Ok(TablesConnection { account, name, key, surroundings, signed_for })
        })
    }
}

/// When the signature of an operation ends, if it does not end already.
fn signature_end(map_read_at: Ticks, signed_for: Duration, now: Ticks) -> Option<Ticks> {
    let ends_at = map_read_at.plus(signed_for);
    (now < ends_at).then_some(ends_at)
}

impl TablesConnection {
    /// The table, opened for one partition until the signature ends.
    fn signed<E>(
        &self,
        routed: &Routed,
        table: &str,
        partition_key: &str,
        permissions: &str,
    ) -> Result<TableClient, AttemptError<E>> {
        let now = self.surroundings.clock.now();
        let ends_at = signature_end(routed.map_read_at(), self.signed_for, now);
        let ends_at = ends_at.ok_or(AttemptError::MapTooOld)?;
        let sas =
            TableSas { account: &self.name, table, permissions, partition_key: Some(partition_key), ends_at };
        if sas.ends_at_second() <= now {
            return Err(AttemptError::MapTooOld);
        }
        Ok(self.account.with_credentials(sas.sign(&self.key)).table(table))
    }

    /// What an error of the service says of the attempt.
    fn failed(&self, routed: &Routed, error: Error) -> AttemptError<TablesError> {
        let now = self.surroundings.clock.now();
        let is_ended = signature_end(routed.map_read_at(), self.signed_for, now).is_none();
        match error {
            error if error.may_be_done() => AttemptError::MayBeDone(error.into()),
            error if error.status() == Some(403) && is_ended => AttemptError::MapTooOld,
            error => AttemptError::Failed(error.into()),
        }
    }
}

/// The partition of an operation.
fn partition_of(operation: &GroupOperation) -> &str {
    match operation {
        GroupOperation::Insert(entity)
        | GroupOperation::Replace(entity, _)
        | GroupOperation::Merge(entity, _)
        | GroupOperation::InsertOrReplace(entity)
        | GroupOperation::InsertOrMerge(entity) => &entity.partition_key,
        GroupOperation::Delete { partition_key, .. } => partition_key,
    }
}

struct SubmitGroup<'a> {
    table: &'a str,
    partition_key: &'a str,
    operations: &'a [GroupOperation],
}

impl ShardWork<TablesConnection> for SubmitGroup<'_> {
    type Output = Vec<Option<String>>;
    type Error = TablesError;

    fn attempt<'a>(
        &'a mut self,
        connection: &'a mut TablesConnection,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<Self::Output, AttemptError<TablesError>>> {
        Box::pin(async move {
            let is_other = |operation: &GroupOperation| partition_of(operation) != self.partition_key;
            if let Some(index) = self.operations.iter().position(is_other) {
                return Err(AttemptError::Failed(TablesError::OtherPartition { index }));
            }
            let table = connection.signed(routed, self.table, self.partition_key, GROUP_PERMISSIONS)?;
            table.submit(self.operations).await.map_err(|error| connection.failed(routed, error))
        })
    }
}

struct ReadEntity<'a> {
    table: &'a str,
    partition_key: &'a str,
    row_key: &'a str,
}

impl ShardWork<TablesConnection> for ReadEntity<'_> {
    type Output = Option<Entity>;
    type Error = TablesError;

    fn attempt<'a>(
        &'a mut self,
        connection: &'a mut TablesConnection,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<Self::Output, AttemptError<TablesError>>> {
        Box::pin(async move {
            let table = connection.signed(routed, self.table, self.partition_key, READ_PERMISSIONS)?;
            let read = table.get_if_present(self.partition_key, self.row_key).await;
            read.map_err(|error| match connection.failed(routed, error) {
                // A read changes nothing.
                AttemptError::MayBeDone(error) => AttemptError::Failed(error),
                error => error,
            })
        })
    }
}

impl Router<TablesConnector> {
    /// Does all operations or none, in their order, on the shard of a key; the new ETag of each, none for
    /// deletions. All are of the partition, which must be one of the key's.
    pub async fn submit(
        &self,
        map: &str,
        key: &[KeyValue],
        table: &str,
        partition_key: &str,
        operations: &[GroupOperation],
    ) -> Result<Vec<Option<String>>, RouterError<TablesError>> {
        let mut work = SubmitGroup { table, partition_key, operations };
        self.run(Keys::new(map, &[key]), Access::Write, &mut work).await
    }

    /// An entity of the shard of a key, if it is there.
    pub async fn entity(
        &self,
        map: &str,
        key: &[KeyValue],
        table: &str,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Entity>, RouterError<TablesError>> {
        let mut work = ReadEntity { table, partition_key, row_key };
        self.run(Keys::new(map, &[key]), Access::Read, &mut work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_ends_t_after_the_read_of_the_map_whenever_it_is_made() {
        let s = |seconds: u64| Ticks(seconds * base::clock::TICKS_PER_SECOND);
        let t = Duration::from_secs(15);
        for (read_at, now, expected) in [
            (s(100), s(100), Some(s(115))),
            (s(100), s(114), Some(s(115))),
            (s(100), s(115), None),
            (s(100), s(999), None),
            // A clock that went back makes nothing last longer.
            (s(100), s(50), Some(s(115))),
        ] {
            assert_eq!(signature_end(read_at, t, now), expected, "{read_at:?} {now:?}");
        }
    }
}
