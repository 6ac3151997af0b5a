//! A metadata store as a stamp needs it: keys with values and revisions, transactions, leases, waiting.
//!
//! It is that of etcd, as bytes; `metadata/` gives keys and values their meaning. What always holds for an
//! implementation: each answer is linearizable and says which store gave it, at which revision; a
//! transaction happens as a whole or not at all; what may have happened is answered as unknown.

use crate::stores::store_error::StoreError;
use async_trait::async_trait;
use bytes::Bytes;
use stamp::Revision;
use std::collections::BTreeMap;
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
    /// Those of them that are behind a key: what a page of a read has left.
    Behind {
        /// What they begin with.
        prefix: String,
        /// The last key of the page before.
        after: String,
    },
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

/// Pages of one read, gathered.
pub(crate) struct PagedRead {
    state: Option<StoreState>,
    entries: BTreeMap<String, KeyEntry>,
    rest: Vec<Selection>,
    pages: usize,
}

/// Pages of one read, at most.
const PAGES_MAX: usize = 10_000;

impl PagedRead {
    pub(crate) fn new(selections: &[Selection]) -> Self {
        PagedRead { state: None, entries: BTreeMap::new(), rest: selections.to_vec(), pages: 0 }
    }

    /// What to read next, and at which revision; none: all is there.
    pub(crate) fn next_page(&mut self) -> Option<(Vec<Selection>, Option<Revision>)> {
        let is_needed = self.state.is_none() || !self.rest.is_empty();
        is_needed.then(|| (std::mem::take(&mut self.rest), self.state.map(|state| state.revision)))
    }

    /// A page.
    pub(crate) fn add(&mut self, page: ReadPage) -> Result<(), StoreError> {
        self.pages += 1;
        let ReadPage { snapshot, rest } = page;
        if self.state.is_some_and(|state| state.cluster != snapshot.state.cluster) {
            return Err(StoreError::Unavailable("another metadata store answers".to_owned()));
        }
        if self.pages == PAGES_MAX && !rest.is_empty() {
            return Err(StoreError::Refused(format!("a read has more than {PAGES_MAX} pages")));
        }
        // Later pages are read at the first one's revision, and the store may have gone on.
        self.state.get_or_insert(snapshot.state);
        // Selections may overlap.
        self.entries.extend(snapshot.entries.into_iter().map(|entry| (entry.key.clone(), entry)));
        self.rest = rest;
        Ok(())
    }

    /// All of it; before a page was added the state is that of no store.
    pub(crate) fn into_snapshot(self) -> Snapshot {
        let state = self.state.unwrap_or(StoreState { cluster: 0, revision: Revision(0) });
        Snapshot { state, entries: self.entries.into_values().collect() }
    }
}

/// One page of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPage {
    /// Which store, the revision of the read, and the keys of this page.
    pub snapshot: Snapshot,
    /// What other pages have; empty: this is the last one.
    pub rest: Vec<Selection>,
}

/// Keys with values.
#[async_trait]
pub trait KeyValues: Send + Sync + 'static {
    /// Sends a transaction.
    async fn commit(&self, transaction: &KeyTransaction) -> KeyAnswer;

    /// Reads as much of `selections` as one answer has: now, or at the revision of the first page of the same
    /// read.
    ///
    /// # Errors
    ///
    /// Never of unknown outcome, never `NotThere`. A revision whose values were let go is unavailable.
    async fn read_page(&self, selections: &[Selection], at: Option<Revision>)
    -> Result<ReadPage, StoreError>;

    /// Reads all of `selections` at one revision, page by page.
    ///
    /// # Errors
    ///
    /// Never of unknown outcome, never `NotThere`.
    async fn read(&self, selections: &[Selection]) -> Result<Snapshot, StoreError> {
        let mut read = PagedRead::new(selections);
        while let Some((selections, at)) = read.next_page() {
            read.add(self.read_page(&selections, at).await?)?;
        }
        Ok(read.into_snapshot())
    }

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
