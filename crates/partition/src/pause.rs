//! How long operations of a range waited while it was split or merged, and for what.

use std::time::Duration;

/// A pause of operations, in the order of what they waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// What was decided became durable, and the ranges that take over got the last of the rows, and of the
    /// blob data if there is any: syncs of the journal, for blob data one of the stream manager's log.
    pub finished_for: Duration,
    /// The size of the rows that were copied meanwhile.
    pub copied_bytes: u64,
    /// The partition map learned of the ranges that take over: a sync of the journal.
    pub map_changed_for: Duration,
    /// They began to serve.
    pub started_for: Duration,
}

impl Pause {
    /// How long it was.
    pub fn total(&self) -> Duration {
        self.finished_for + self.map_changed_for + self.started_for
    }
}
