//! The operation that deletes a message, for whoever holds its last receipt.

use crate::error::QueueError;
use crate::head_row::HeadRow;
use crate::message_changes;
use crate::message_id::{MessageId, PopReceipt};
use crate::message_row::MessageRow;
use crate::message_store::{MessageStore, Position};
use base::Ticks;
use base::codec::DecodeError;
use partition::{Decision, ObjectTable, Operation, Read, Row, RowVersion, Rows};

/// A message as its holder names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Which message.
    pub(crate) id: MessageId,
    /// The holder's right to it.
    pub(crate) receipt: PopReceipt,
}

impl Held {
    /// Where the message lies, if the receipt is its last.
    pub(crate) fn position(&self) -> Position {
        Position { visible_at: self.receipt.visible_at, insertion: self.id.insertion }
    }

    /// The message in the row at that position, if it is the one that is held, and not expired at `now`.
    pub(crate) fn find(&self, row: Option<&Row>, now: Ticks) -> Result<Option<MessageRow>, DecodeError> {
        let message = row.map(MessageRow::open).transpose()?;
        Ok(message.filter(|message| {
            message.receipt_number == self.receipt.number
                && message.chance == self.id.chance
                && message.expires_at > now
        }))
    }
}

/// Deletes a message.
#[derive(Clone, Debug)]
pub(crate) struct DeleteMessage {
    /// The queue.
    pub(crate) store: MessageStore,
    /// The message.
    pub(crate) held: Held,
    /// A low water that is known already.
    pub(crate) low_water: Ticks,
}

impl DeleteMessage {
    fn delete(
        &self,
        rows: &Rows,
        version: RowVersion,
    ) -> Result<Decision<Result<bool, QueueError>>, QueueError> {
        if self.held.find(rows.point(0), Ticks(version.0))?.is_none() {
            return Ok(Decision::unchanged(Ok(false)));
        }
        let mut changes = Vec::with_capacity(3);
        message_changes::remove(&mut changes, &self.store, self.held.position());
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
        let message = self.store.message_key(self.held.position());
        vec![Read::Point(message), Read::Point(self.store.head_key())]
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        self.delete(rows, version).unwrap_or_else(|error| Decision::unchanged(Err(error)))
    }
}
