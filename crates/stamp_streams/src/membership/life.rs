//! One life of a process: from joining the stamp to the end of its lease.
//!
//! What always holds: [`Life::holds`] is asked of both clocks each time; once it has said no it never says
//! yes again; a new life has a new incarnation, and never makes a name that another has made.

use crate::backup::store_mark::check_store;
use crate::error::StampError;
use crate::extents::bundle_turns::BundleTurns;
use crate::membership::loops::Loops;
use crate::membership::parts_answered::PartsAnswered;
use crate::metadata::metadata_store::{Metadata, read_life};
use crate::stores::key_values::StoreLease;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use parking_lot::Mutex;
use stamp::{
    Compare, Incarnation, Key, Lease, Mark, RangeId, Revision, StampLife, Transaction, TransactionAnswer,
    UniqueName, Value,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Ranges that this life does not take.
#[derive(Default)]
pub(crate) struct NotTaken {
    /// Those that a split by this process makes, while its outcome is not known.
    pub(crate) heirs_under_way: Mutex<BTreeSet<RangeId>>,
    /// How many handles of each range have not stopped: it is not taken while there is one.
    pub(crate) handles: Mutex<BTreeMap<RangeId, usize>>,
}

/// Parts of the process's logs, of all its ranges.
#[derive(Default)]
pub(crate) struct PartsOfLife {
    pub(crate) answered: Mutex<PartsAnswered>,
    /// Bytes of parts that wait for the others of their bundles.
    pub(crate) waiting_size: Arc<AtomicU64>,
    /// Bundles under way.
    pub(crate) bundles: Arc<Mutex<BundleTurns>>,
}

/// One life of a process.
pub struct Life {
    pub(crate) surroundings: Surroundings,
    pub(crate) metadata: Metadata,
    pub(crate) store_lease: StoreLease,
    pub(crate) not_taken: NotTaken,
    pub(crate) loops: Arc<Loops>,
    pub(crate) parts: PartsOfLife,
    incarnation: Incarnation,
    life: StampLife,
    restores: u64,
    lease: Mutex<Lease>,
    counter: AtomicU64,
    ended: Notify,
}

impl Life {
    /// A life with its key in the metadata store, and no beat yet.
    pub(crate) async fn begin(surroundings: &Surroundings) -> Result<Arc<Self>, StampError> {
        let Some(entry) = read_life(surroundings).await? else {
            let stamp = surroundings.settings.stamp;
            return Err(StampError::Setup(format!("the metadata store has no stamp {stamp}")));
        };
        check_store(surroundings, entry.generation).await?;
        let incarnation = surroundings.draw_incarnation();
        let settings = &surroundings.settings;
        let life = StampLife { stamp: settings.stamp, generation: entry.generation };
        let granted = surroundings.try_key(surroundings.keys.grant(settings.ttl)).await;
        let granted = granted.unwrap_or_else(|| Err(StoreError::Unavailable("no answer".to_owned())));
        let store_lease = granted.map_err(|error| StampError::store("lease", error))?;
        let joined = Arc::new(Life {
            surroundings: surroundings.clone(),
            metadata: Metadata::new(surroundings.clone(), life),
            store_lease,
            not_taken: NotTaken::default(),
            loops: Arc::default(),
            parts: PartsOfLife::default(),
            incarnation,
            life,
            restores: entry.restores,
            lease: Mutex::new(Lease::new(settings.ttl, settings.margin)),
            counter: AtomicU64::new(0),
            ended: Notify::new(),
        });
        joined.put_key().await?;
        Ok(joined)
    }

    /// Writes the key that goes with the lease. Under a new name nothing can be in its way; if the outcome
    /// is unknown the lease ends by itself.
    async fn put_key(&self) -> Result<(), StampError> {
        let key = Key::Process(self.incarnation);
        let mut transaction = Transaction::new(self.life.generation);
        transaction.compares.push(Compare::ChangedAt(key, Revision(0)));
        transaction.puts.push((key, Value::Present));
        match self.metadata.commit_with(&transaction, Some(self.store_lease)).await {
            TransactionAnswer::Committed(_) => Ok(()),
            _ => Err(StampError::store("joining", StoreError::UnknownOutcome("no answer".to_owned()))),
        }
    }

    /// The incarnation.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The stamp, and the life of its metadata store.
    pub fn life(&self) -> StampLife {
        self.life
    }

    /// How many restores came before that life.
    pub fn restores(&self) -> u64 {
        self.restores
    }

    /// The newest revision of the metadata store that an answer to this life has had; 0: there was none.
    pub fn known_revision(&self) -> Revision {
        self.metadata.known_revision()
    }

    /// Whether the process may admit and acknowledge now.
    pub fn holds(&self) -> bool {
        let holds = self.lease.lock().holds(self.surroundings.instants()) && !self.metadata.is_other_store();
        if !holds {
            self.end();
        }
        holds
    }

    /// How long the process may still admit and acknowledge, unless the next beat moves the end.
    pub fn lease_left(&self) -> Duration {
        self.lease.lock().left(self.surroundings.instants())
    }

    pub(crate) fn with_lease<T>(&self, change: impl FnOnce(&mut Lease) -> T) -> T {
        change(&mut self.lease.lock())
    }

    /// The lease ends now, if it has not.
    pub(crate) fn end(&self) {
        self.lease.lock().end();
        self.ended.notify_waiters();
    }

    /// Waits until the lease has ended. Whoever holds ranges drops them then, leaves and joins again.
    pub async fn ended(&self) {
        loop {
            let ended = self.ended.notified();
            let mut ended = std::pin::pin!(ended);
            ended.as_mut().enable();
            if !self.holds() {
                return;
            }
            ended.await;
        }
    }

    /// Ends the lease, here and in the metadata store. Only once all ranges are dropped or released.
    pub async fn leave(&self) {
        self.end();
        // Without an answer it ends by itself.
        let revoked = self.surroundings.keys.revoke(self.store_lease);
        drop(self.surroundings.try_key(revoked).await);
    }

    /// A name that this incarnation has not made before.
    pub fn next_name(&self) -> UniqueName {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        UniqueName { incarnation: self.incarnation, counter }
    }

    pub(crate) fn next_mark(&self) -> Mark {
        Mark(self.next_name())
    }
}
