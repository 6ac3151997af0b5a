//! The operations of a sweep: one stores its begin and its result in the head, one removes expired messages.

use crate::error::QueueError;
use crate::messages::message_changes;
use crate::rows::head_row::HeadRow;
use crate::rows::message_row::{MessageRow, NEVER};
use crate::rows::message_store::{MessageStore, Position};
use base::Ticks;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};

/// Messages that one operation removes at most.
pub(crate) const REMOVED_TOGETHER_MAX: usize = 128;

/// Removes the messages at some positions, if they are still there and have expired.
#[derive(Clone, Debug)]
pub(crate) struct RemoveExpired {
    /// The queue.
    pub(crate) store: MessageStore,
    /// Where the scan found them; at most [`REMOVED_TOGETHER_MAX`].
    pub(crate) positions: Vec<Position>,
}

impl RemoveExpired {
    fn remove(
        &self,
        rows: &Rows,
        version: RowVersion,
    ) -> Result<Decision<Result<u64, QueueError>>, QueueError> {
        let mut changes = Vec::with_capacity(self.positions.len() * 2 + 1);
        let mut removed = 0;
        for (index, position) in self.positions.iter().enumerate() {
            let Some(row) = rows.point(index + 1) else { continue };
            if MessageRow::open(row)?.expires_at <= Ticks(version.0) {
                message_changes::remove(&mut changes, &self.store, *position);
                removed += 1;
            }
        }
        if removed > 0 {
            let head = HeadRow::open(rows.point(0))?.without(removed);
            changes.push(head.put(self.store.head_key()));
        }
        Ok(Decision { changes, reply: Ok(removed) })
    }
}

impl Operation for RemoveExpired {
    /// How many were removed.
    type Reply = Result<u64, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        let messages = self.positions.iter().map(|position| self.store.message_key(*position));
        std::iter::once(self.store.head_key()).chain(messages).map(Read::Point).collect()
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        self.remove(rows, version).unwrap_or_else(|error| Decision::unchanged(Err(error)))
    }
}

/// The progress of a sweep of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweepProgress {
    /// It begins: from now on the head keeps the first expiry of new messages apart.
    Begun,
    /// It has scanned every message that was there when it began and removed the expired ones; none of the
    /// others expires before this instant.
    Complete(Ticks),
}

/// Stores the progress of a sweep in the head.
#[derive(Clone, Debug)]
pub(crate) struct StoreSweepProgress {
    /// The queue.
    pub(crate) store: MessageStore,
    /// What to store.
    pub(crate) progress: SweepProgress,
}

impl Operation for StoreSweepProgress {
    type Reply = Result<(), QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.store.head_key())]
    }

    fn gives_back(&self) -> bool {
        // On a full disk, a sweep whose begin can't be stored could remove nothing.
        true
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Self::Reply> {
        let head = match HeadRow::open(rows.point(0)) {
            Ok(head) => head,
            Err(error) => return Decision::unchanged(Err(error.into())),
        };
        let head = match self.progress {
            SweepProgress::Begun => HeadRow { swept_expiry: head.first_expiry(), new_expiry: NEVER, ..head },
            SweepProgress::Complete(expiry) => HeadRow { swept_expiry: expiry, ..head },
        };
        Decision { changes: vec![head.put(self.store.head_key())], reply: Ok(()) }
    }
}
