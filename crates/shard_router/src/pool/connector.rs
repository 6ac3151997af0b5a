//! Makes connections to one kind of shard.

use super::credentials::ShardCredentials;
use base::BoxFuture;
use shard_backend::{Capabilities, Fence};
use shard_map::Shard;
use std::fmt;
use std::time::Duration;

/// T: how long after the read of the map a storage account's signatures end, and how old the map of an
/// operation on shards without a fence that holds may be.
pub const MAP_FOR_MAX: Duration = Duration::from_secs(15);

/// Why there is no connection. Nothing was done with the shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub String);

impl ConnectError {
    /// What went wrong, and what helps.
    pub fn new(what: impl fmt::Display) -> Self {
        ConnectError(what.to_string())
    }
}

/// Makes connections to one kind of shard: location and credentials to a connection.
pub trait ShardConnector: Send + Sync + 'static {
    /// What it makes.
    type Connection: Send + 'static;

    /// What shards of this kind can do. One without a fence says so here.
    fn capabilities(&self) -> Capabilities;

    /// How old the map of an operation may be. A fence that holds makes an old map harmless.
    fn map_for_max(&self) -> Duration {
        match self.capabilities().fence {
            Fence::HeldUntilCommit => Duration::MAX,
            Fence::Expires | Fence::None => MAP_FOR_MAX,
        }
    }

    /// Connects. The caller bounds the time.
    fn connect<'a>(
        &'a self,
        shard: &'a Shard,
        credentials: &'a ShardCredentials,
    ) -> BoxFuture<'a, Result<Self::Connection, ConnectError>>;

    /// Whether a connection that was idle works, as far as this side knows.
    fn is_usable(&self, _connection: &Self::Connection) -> bool {
        true
    }
}
