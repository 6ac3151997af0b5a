//! Checkpoints that were replaced, as a whole or by their first rows: their streams and extents go once
//! nobody reads them any more.
//!
//! What always holds: an extent leaves only while no row needs it that this range, an heir or a reader may
//! see; what can't be removed now is remembered, and no further checkpoint is written before it is removed.

use crate::tree::TreeCheckpoint;
use parking_lot::Mutex;
use std::sync::Arc;

/// Replaced checkpoints of a range.
pub(crate) struct Replaced {
    /// Checkpoints that were compacted into others and may still have readers.
    pub(crate) retired: Mutex<Vec<Arc<TreeCheckpoint>>>,
    /// Numbers of checkpoints whose streams are to be removed: nothing refers to them and nobody reads them.
    /// No other one is written before that is done, so only those that were just compacted and some few more
    /// are here.
    pub(crate) unused: Mutex<Vec<u64>>,
    /// Checkpoints whose first rows have moved to others, as they were before, while somebody may read them
    /// so. One comes here before the tree is replaced that has it so: who asks the tree first, and then
    /// whether what was before it is read, misses none.
    pub(crate) shed: Mutex<Vec<Shed>>,
}

impl Replaced {
    /// These were found unused by a load.
    pub(crate) fn new(unused: Vec<u64>) -> Self {
        Replaced { retired: Mutex::default(), unused: Mutex::new(unused), shed: Mutex::default() }
    }

    /// What the checkpoint of this number was before its first rows moved, each time that they did; `None` if
    /// somebody may read it so.
    pub(super) fn unread_shed(&self, number: u64) -> Option<Vec<Arc<TreeCheckpoint>>> {
        let shed = self.shed.lock();
        let of_number = || shed.iter().filter(|one| one.number() == number);
        let is_read = of_number().any(|one| one.is_read(number));
        (!is_read).then(|| of_number().map(|one| one.former.clone()).collect())
    }

    /// Nothing is owed of these any more.
    pub(super) fn forget_shed(&self, owed: &[Arc<TreeCheckpoint>]) {
        self.shed.lock().retain(|one| !owed.iter().any(|former| Arc::ptr_eq(former, &one.former)));
    }
}

/// A checkpoint as it was before its first rows moved.
pub(crate) struct Shed {
    pub(crate) former: Arc<TreeCheckpoint>,
}

impl Shed {
    pub(crate) fn number(&self) -> u64 {
        self.former.reference.number
    }

    /// Whether it is the checkpoint of this number and somebody may read it as it was.
    pub(crate) fn is_read(&self, number: u64) -> bool {
        self.number() == number
            && (Arc::strong_count(&self.former) > 1 || Arc::strong_count(&self.former.checkpoint) > 1)
    }
}
