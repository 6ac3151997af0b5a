//! Makes connections to one kind of shard.

use super::credentials::ShardCredentials;
use super::lease::Lease;
use crate::fan_out::part::{PartRefusal, ShardPart};
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

    /// Whether the shard has all of a part of a map, since the epochs of the map. It is asked after the
    /// part's answer came, so that an answer which passes lacks no row. A kind of shard that is not asked
    /// goes by the map's age, unless it has a fence that holds, with which a move waits for nothing; `now` is
    /// monotonic time.
    fn check_part<'a>(
        &'a self,
        _connection: &'a mut Self::Connection,
        part: &'a ShardPart,
        now: Duration,
    ) -> BoxFuture<'a, Result<(), PartRefusal>> {
        Box::pin(async move { part.check_unasked(self.capabilities().fence, now, self.map_for_max()) })
    }

    /// A connection is lent with its lease, and comes back without. What goes on with the connection after an
    /// operation was abandoned keeps a clone, and so counts as one of the pool's connections until its end.
    fn set_lease(&self, _connection: &mut Self::Connection, _lease: Option<Lease>) {}

    /// Whether a connection that was idle works, as far as this side knows.
    fn is_usable(&self, _connection: &Self::Connection) -> bool {
        true
    }
}
