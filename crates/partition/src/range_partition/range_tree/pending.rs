//! Operations that were decided and gather for the next group of the commit log, and those that wait for its
//! outcome.
//!
//! What always holds: everyone who waits for a group is woken with its outcome, or with an error if the group
//! is dropped before it has one.

use crate::commit_log;
use crate::error::PartitionError;
use crate::operation::{RowChange, RowVersion};
use base::wakes::Sleeper;
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub(crate) type Outcome = Result<(), PartitionError>;

/// Who waits for the outcome of a group, or the outcome.
enum Told {
    /// At most as many as operations are admitted.
    NotYet(Vec<Sleeper>),
    Outcome(Outcome),
}

/// Where an outcome will come from. One for the whole group: those that wait are woken together.
pub(crate) struct Waiting {
    group: Arc<Mutex<Told>>,
    /// The number of this one among those that sleep, once it does.
    place: Option<usize>,
}

impl Future for Waiting {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let place = self.place;
        let next = match &mut *self.group.lock() {
            Told::Outcome(outcome) => return Poll::Ready(outcome.clone()),
            Told::NotYet(sleepers) => match place {
                Some(place) => {
                    if !sleepers[place].is_current(context) {
                        sleepers[place] = Sleeper::current(context);
                    }
                    place
                }
                None => {
                    sleepers.push(Sleeper::current(context));
                    sleepers.len() - 1
                }
            },
        };
        self.place = Some(next);
        Poll::Pending
    }
}

/// Tells those that wait for a group what became of it; if it is dropped before, that the range is closed.
pub(crate) struct Teller(Arc<Mutex<Told>>);

impl Default for Teller {
    fn default() -> Self {
        Teller(Arc::new(Mutex::new(Told::NotYet(Vec::new()))))
    }
}

impl Teller {
    pub(crate) fn tell(&self, outcome: Outcome) {
        let told = std::mem::replace(&mut *self.0.lock(), Told::Outcome(outcome));
        if let Told::NotYet(sleepers) = told {
            base::wakes::wake_all(sleepers);
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if matches!(*self.0.lock(), Told::NotYet(_)) {
            self.tell(Err(PartitionError::OutcomeUnknown("range is closed".to_owned())));
        }
    }
}

/// Operations that gather for the next group.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) group: Vec<u8>,
    pub(crate) teller: Teller,
    /// Operations that wait for the outcome.
    pub(crate) waiting_count: usize,
    /// Of the last operation in the group.
    pub(crate) last_version: Option<RowVersion>,
    /// By how many bytes of blob data more are named after the group; negative: less.
    pub(crate) grown_bytes: i64,
}

impl Pending {
    /// Sees to it that there is a group, be it one without operations.
    pub(crate) fn begin_group(&mut self) {
        if self.group.is_empty() {
            commit_log::start_group(&mut self.group);
        }
    }

    /// Adds an operation's changes to the group.
    pub(crate) fn add(&mut self, version: RowVersion, changes: &[RowChange]) {
        self.begin_group();
        commit_log::put_operation(&mut self.group, version, changes);
        self.last_version = Some(version);
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.group.len()
    }

    /// Takes what has gathered; the next group gathers in `memory`.
    pub(crate) fn take(&mut self, memory: Vec<u8>) -> Pending {
        std::mem::replace(self, Pending { group: memory, ..Pending::default() })
    }

    /// Tells the outcome of everything decided so far.
    pub(crate) fn wait(&mut self) -> Waiting {
        self.waiting_count += 1;
        Waiting { group: self.teller.0.clone(), place: None }
    }
}
