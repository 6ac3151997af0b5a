//! The operation that deletes a message, if the request carries its last receipt.

use crate::error::QueueError;
use crate::messages::message_changes;
use crate::messages::message_handle::MessageHandle;
use crate::rows::head_row::HeadRow;
use crate::rows::message_store::MessageStore;
use base::Ticks;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};

/// Deletes a message.
#[derive(Clone, Debug)]
pub(crate) struct DeleteMessage {
    /// The queue.
    pub(crate) store: MessageStore,
    /// The message.
    pub(crate) handle: MessageHandle,
    /// The queue's low water, as far as it is known.
    pub(crate) low_water: Ticks,
}

impl DeleteMessage {
    fn delete(
        &self,
        rows: &Rows,
        version: RowVersion,
    ) -> Result<Decision<Result<bool, QueueError>>, QueueError> {
        if self.handle.find(rows.point(0), Ticks(version.0))?.is_none() {
            return Ok(Decision::unchanged(Ok(false)));
        }
        let mut changes = Vec::with_capacity(3);
        message_changes::remove(&mut changes, &self.store, self.handle.position());
        let head = HeadRow::open(rows.point(1))?.without(1).with_low_water(self.low_water);
        changes.push(head.put(self.store.head_key()));
        Ok(Decision { changes, reply: Ok(true) })
    }
}

impl Operation for DeleteMessage {
    /// Whether the receipt was the message's last.
    type Reply = Result<bool, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        let message = self.store.message_key(self.handle.position());
        vec![Read::Point(message), Read::Point(self.store.head_key())]
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        self.delete(rows, version).unwrap_or_else(|error| Decision::unchanged(Err(error)))
    }
}
