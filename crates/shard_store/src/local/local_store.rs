//! Where a shard keeps its copy: in the shard itself, so that it is there whenever the data is.
//!
//! What an implementation must hold: a copy is replaced as a whole or not, and only if the one that was read
//! is still there; a replacement that returned is durable. In a shard with transactions the fence's rows are
//! part of the copy: a replacement waits for transactions that hold a row which it changes.

use super::copy::LocalCopy;
use crate::error::StoreError;
use base::BoxFuture;

/// Which version of a copy: another after each replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision(pub String);

/// A copy as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCopy {
    /// The copy.
    pub copy: LocalCopy,
    /// Its version.
    pub revision: Revision,
}

/// Whether a copy was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// It was; its new version, if it was not removed.
    Done(Option<Revision>),
    /// Another version is there, or none.
    Conflict,
}

/// A shard's place for its copy.
pub trait LocalStore: Send + Sync + 'static {
    /// Where it is, for messages: without secrets.
    fn place(&self) -> &str;
    /// The copy, if there is one.
    fn read(&self) -> BoxFuture<'_, Result<Option<StoredCopy>, StoreError>>;
    /// Replaces the copy of a revision, or puts the first one; without a copy it is removed.
    fn replace<'a>(
        &'a self,
        expected: Option<&'a Revision>,
        copy: Option<&'a LocalCopy>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>>;
}
