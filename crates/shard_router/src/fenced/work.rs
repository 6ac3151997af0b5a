//! One attempt of an operation on a connection: what a kind of shard implements.

use super::routed::Routed;
use base::BoxFuture;
use shard_store::Refusal;

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptError<E> {
    /// The fence refused it. Nothing was done, and the connection is fine.
    Refused(Refusal),
    /// The map that it is of is too old to send anything with. Nothing was sent.
    MapTooOld,
    /// It failed, nothing of it was done, and nothing is open on the connection, which is fine.
    RolledBack(E),
    /// It failed, and nothing of it was done. The connection is closed.
    Failed(E),
    /// It failed, and may have been done: it is not tried again.
    MayBeDone(E),
}

/// An operation.
///
/// What an implementation must hold: unless its shards' [`shard_backend::Fence`] is none, nothing is done if
/// the fence of one of [`Routed::mappings`] refuses it, from its check until the commit; an error is
/// [`AttemptError::MayBeDone`] whenever it is open whether anything was done; a connection with which an
/// attempt succeeded, was refused or was rolled back has nothing open on it. It may run twice, so it changes
/// nothing but the shard.
pub trait ShardWork<T>: Send {
    /// What it gives.
    type Output: Send;
    /// Its own errors.
    type Error: Send;

    /// Runs it once.
    fn attempt<'a>(
        &'a mut self,
        connection: &'a mut T,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<Self::Output, AttemptError<Self::Error>>>;
}
