//! The operation that puts a message.

use crate::error::QueueError;
use crate::messages::message::Message;
use crate::messages::message_changes;
use crate::rows::head_row::HeadRow;
use crate::rows::message_row::{MessageRow, NEVER};
use crate::rows::message_store::{MessageStore, Position};
use base::Ticks;
use bytes::Bytes;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};
use std::time::Duration;

/// Puts a message; its size is checked.
#[derive(Clone, Debug)]
pub(crate) struct PutMessage {
    /// The queue.
    pub(crate) store: MessageStore,
    /// The random half of the message's id.
    pub(crate) chance: u64,
    /// Random; only the reply to this put carries it.
    pub(crate) receipt_number: u64,
    /// UTF-8.
    pub(crate) text: Bytes,
    /// How long it is invisible.
    pub(crate) invisible_for: Duration,
    /// How long it lives; `None`: for ever.
    pub(crate) lives_for: Option<Duration>,
    /// The queue's low water, as far as it is known.
    pub(crate) low_water: Ticks,
}

impl PutMessage {
    fn put(
        &self,
        rows: &Rows,
        version: RowVersion,
    ) -> Result<Decision<Result<Message, QueueError>>, QueueError> {
        let now = Ticks(version.0);
        let position = Position { visible_at: now.plus(self.invisible_for), insertion: version.0 };
        let row = MessageRow {
            chance: self.chance,
            expires_at: self.lives_for.map_or(NEVER, |lives_for| now.plus(lives_for)),
            receipt_number: self.receipt_number,
            dequeue_count: 0,
            text: self.text.clone(),
        };
        let head = HeadRow::open(rows.point(0))?.with_low_water(self.low_water);
        let head = HeadRow {
            message_count: head.message_count + 1,
            new_expiry: head.new_expiry.min(row.expires_at),
            ..head
        };
        let mut changes = Vec::with_capacity(3);
        message_changes::put(&mut changes, &self.store, position, &row);
        changes.push(head.put(self.store.head_key()));
        Ok(Decision { changes, reply: Ok(Message::new(position, row)) })
    }
}

impl Operation for PutMessage {
    type Reply = Result<Message, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.store.head_key())]
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        self.put(rows, version).unwrap_or_else(|error| Decision::unchanged(Err(error)))
    }
}
