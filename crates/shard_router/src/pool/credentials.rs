//! What opens a shard: never a part of the map, asked for when a connection is made.
//!
//! What always holds: a secret is not printed.

use base::BoxFuture;
use shard_map::Shard;
use std::fmt;

/// What opens a shard. Each kind of shard says what it needs of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ShardCredentials {
    /// A user, or an account's name.
    pub user: String,
    /// A password, or an account's key.
    pub secret: String,
}

impl fmt::Debug for ShardCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardCredentials").field("user", &self.user).field("secret", &"hidden").finish()
    }
}

/// There are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CredentialError(pub String);

/// Gives each shard's credentials; called for each connection that is made, so that they may change.
pub trait CredentialProvider: Send + Sync + 'static {
    /// Those of a shard.
    fn credentials<'a>(
        &'a self,
        shard: &'a Shard,
    ) -> BoxFuture<'a, Result<ShardCredentials, CredentialError>>;
}

/// The same for all shards.
impl CredentialProvider for ShardCredentials {
    fn credentials<'a>(
        &'a self,
        _shard: &'a Shard,
    ) -> BoxFuture<'a, Result<ShardCredentials, CredentialError>> {
        Box::pin(async move { Ok(self.clone()) })
    }
}
