//! The operation that gives a message another text or another time to become visible, if the request carries
//! its last receipt.

use crate::error::QueueError;
use crate::messages::message::UpdatedMessage;
use crate::messages::message_changes;
use crate::messages::message_handle::MessageHandle;
use crate::messages::message_id::PopReceipt;
use crate::rows::message_store::{MessageStore, Position};
use base::Ticks;
use bytes::Bytes;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};
use std::time::Duration;

/// Updates a message; the text's size is checked.
#[derive(Clone, Debug)]
pub(crate) struct UpdateMessage {
    /// The queue.
    pub(crate) store: MessageStore,
    /// The message.
    pub(crate) handle: MessageHandle,
    /// How long it is invisible from now on.
    pub(crate) invisible_for: Duration,
    /// Random; only the reply to this update carries it.
    pub(crate) receipt_number: u64,
    /// The new text, if it changes.
    pub(crate) text: Option<Bytes>,
}

impl UpdateMessage {
    fn update(
        &self,
        rows: &Rows,
        version: RowVersion,
    ) -> Result<Decision<<Self as Operation>::Reply>, QueueError> {
        let now = Ticks(version.0);
        let Some(mut row) = self.handle.find(rows.point(0), now)? else {
            return Ok(Decision::unchanged(Ok(None)));
        };
        let from = self.handle.position();
        let to = Position { visible_at: now.plus(self.invisible_for), insertion: from.insertion };
        if to.visible_at > row.expires_at {
            return Err(QueueError::VisibleAfterExpiry);
        }
        if let Some(text) = &self.text {
            row.text = text.clone();
        }
        row.receipt_number = self.receipt_number;
        let mut changes = Vec::with_capacity(3);
        message_changes::relocate(&mut changes, &self.store, from, to, &row);
        let receipt = PopReceipt { visible_at: to.visible_at, number: self.receipt_number };
        Ok(Decision { changes, reply: Ok(Some(UpdatedMessage { receipt, visible_at: to.visible_at })) })
    }
}

impl Operation for UpdateMessage {
    /// The new receipt, if the one in the handle was the message's last.
    type Reply = Result<Option<UpdatedMessage>, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.store.message_key(self.handle.position()))]
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        self.update(rows, version).unwrap_or_else(|error| Decision::unchanged(Err(error)))
    }
}
