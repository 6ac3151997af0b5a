//! A metadata store as a stamp needs it: keys with values and revisions, transactions, leases, waiting.
//!
//! It is that of etcd, as bytes; `metadata/` gives keys and values their meaning. What always holds for an
//! implementation: each answer is linearizable and says which store gave it, at which revision; a
//! transaction happens as a whole or not at all; what may have happened is answered as unknown.

use crate::stores::store_error::StoreError;
use async_trait::async_trait;
use bytes::Bytes;
use stamp::Revision;
use std::time::Duration;

/// A lease of the metadata store: keys that were put under it go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreLease(pub u64);

/// Which store answered, and its revision then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// Of the store as a whole; another one after the store was lost and made anew.
    pub cluster: u64,
    /// That of the newest transaction.
    pub revision: Revision,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCompare {
    /// The key has this value.
    Is(String, Bytes),
    /// The key was changed last at this revision; at 0 it is not there.
    ChangedAt(String, Revision),
    /// The key is there.
    Exists(String),
}

/// One atomic change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyTransaction {
    /// What must hold.
    pub compares: Vec<KeyCompare>,
    /// What is written then; with a lease the key goes when that ends.
    pub puts: Vec<(String, Bytes, Option<StoreLease>)>,
    /// What is removed then.
    pub deletes: Vec<String>,
}

/// The answer to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAnswer {
    /// It happened, at the revision of the state.
    Committed(StoreState),
    /// A compare did not hold; this try changed nothing.
    CompareFailed(StoreState),
    /// No answer, or one that says nothing: it may have happened, and may still.
    Unknown,
}

/// What to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// One key.
    Key(String),
    /// All keys that begin so.
    Prefix(String),
}

/// A key that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Bytes,
    /// When it was changed last.
    pub changed_at: Revision,
}

/// Keys at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Which store, and the revision.
    pub state: StoreState,
    /// Those of the selected keys that are there, in the order of their names.
    pub entries: Vec<KeyEntry>,
}

/// Keys with values.
#[async_trait]
pub trait KeyValues: Send + Sync + 'static {
    /// Sends a transaction.
    async fn commit(&self, transaction: &KeyTransaction) -> KeyAnswer;

    /// Reads all of `selections` at one revision.
    ///
    /// # Errors
    ///
    /// Never of unknown outcome, never `NotThere`.
    async fn read(&self, selections: &[Selection]) -> Result<Snapshot, StoreError>;

    /// Waits until the store has a revision above `after`, or for some time: whoever waits looks anyway.
    ///
    /// # Errors
    ///
    /// Never of unknown outcome, never `NotThere`.
    async fn wait_for_change(&self, after: Revision) -> Result<(), StoreError>;

    /// Begins a lease.
    ///
    /// # Errors
    ///
    /// Of unknown outcome: a lease that nobody knows ends by itself.
    async fn grant(&self, ttl: Duration) -> Result<StoreLease, StoreError>;

    /// Keeps a lease alive for its time from now on.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotThere`] if it has ended.
    async fn keep_alive(&self, lease: StoreLease) -> Result<(), StoreError>;

    /// Ends a lease, and removes its keys.
    ///
    /// # Errors
    ///
    /// Of unknown outcome: it ends by itself then.
    async fn revoke(&self, lease: StoreLease) -> Result<(), StoreError>;

    /// Lets go what keys held before `revision`. What they hold stays; a read at an older revision fails from
    /// then on.
    ///
    /// # Errors
    ///
    /// Of unknown outcome: it may be sent again.
    async fn compact(&self, revision: Revision) -> Result<(), StoreError>;

    /// For how long the lease that a key goes with still lives; none if the key is not there, has no lease,
    /// or the store can't say. For people: nothing is decided by it.
    ///
    /// # Errors
    ///
    /// Never of unknown outcome, never `NotThere`.
    async fn lease_left(&self, key: &str) -> Result<Option<Duration>, StoreError> {
        let _ = key;
        Ok(None)
    }
}
