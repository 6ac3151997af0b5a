//! Changes of a range's document that wait for the one under way: they go together with the next transaction.
//!
//! What always holds: a change whose caller went away before it was sent is not made; each that was sent is
//! answered once its transaction is settled, by whichever caller settles it.

use crate::error::StampError;
use parking_lot::Mutex;
use stamp::{Change, RangeDocument};
use std::sync::Arc;

/// What became of one caller's changes: the document then.
pub(crate) type ChangeOutcome = Result<Arc<RangeDocument>, StampError>;

/// The changes of one caller.
pub(crate) struct WaitingChange {
    pub(crate) changes: Vec<Change>,
    outcome: Mutex<Option<ChangeOutcome>>,
}

impl WaitingChange {
    pub(crate) fn answer(&self, outcome: ChangeOutcome) {
        *self.outcome.lock() = Some(outcome);
    }

    /// What became of them, once that is known.
    pub(crate) fn outcome(&self) -> Option<ChangeOutcome> {
        self.outcome.lock().clone()
    }
}

/// The changes of callers: as many as there are tasks that change the document, one for each.
#[derive(Default)]
pub(crate) struct WaitingChanges {
    /// Not sent yet, the first one first.
    waiting: Mutex<Vec<Arc<WaitingChange>>>,
    /// Those of the transaction that is under way.
    sent: Mutex<Vec<Arc<WaitingChange>>>,
}

impl WaitingChanges {
    /// Has `changes` wait, until the guard goes.
    pub(crate) fn wait(&self, changes: &[Change]) -> WaitGuard<'_> {
        let change = Arc::new(WaitingChange { changes: changes.to_vec(), outcome: Mutex::new(None) });
        self.waiting.lock().push(change.clone());
        WaitGuard { all: self, change }
    }

    /// All that wait, the first one first.
    pub(crate) fn waiting(&self) -> Vec<Arc<WaitingChange>> {
        self.waiting.lock().clone()
    }

    /// These wait no more, and are not sent.
    pub(crate) fn refuse(&self, change: &Arc<WaitingChange>, why: StampError) {
        self.forget(change);
        change.answer(Err(why));
    }

    /// These are under way.
    pub(crate) fn send(&self, changes: Vec<Arc<WaitingChange>>) {
        changes.iter().for_each(|change| self.forget(change));
        *self.sent.lock() = changes;
    }

    /// What was under way is settled so.
    pub(crate) fn settled(&self, outcome: &ChangeOutcome) {
        for change in std::mem::take(&mut *self.sent.lock()) {
            change.answer(outcome.clone());
        }
    }

    fn forget(&self, change: &Arc<WaitingChange>) {
        self.waiting.lock().retain(|other| !Arc::ptr_eq(other, change));
    }
}

/// A caller that waits.
pub(crate) struct WaitGuard<'a> {
    all: &'a WaitingChanges,
    change: Arc<WaitingChange>,
}

impl WaitGuard<'_> {
    /// What became of its changes, once that is known.
    pub(crate) fn outcome(&self) -> Option<ChangeOutcome> {
        self.change.outcome()
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.all.forget(&self.change);
    }
}
