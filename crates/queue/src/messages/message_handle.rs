//! A message as a client names it to update or delete it: by its id and its last pop receipt.

use crate::messages::message_id::{MessageId, PopReceipt};
use crate::rows::message_row::MessageRow;
use crate::rows::message_store::Position;
use base::Ticks;
use base::codec::DecodeError;
use partition::Row;

/// Names a message and proves that the client made its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageHandle {
    /// The message's id.
    pub(crate) id: MessageId,
    /// The message's last pop receipt, or the operation is refused.
    pub(crate) receipt: PopReceipt,
}

impl MessageHandle {
    /// Position of the message, if the receipt is its last.
    pub(crate) fn position(&self) -> Position {
        Position { visible_at: self.receipt.visible_at, insertion: self.id.insertion }
    }

    /// The message in `row` at that position, if id and receipt match and it has not expired at `now`.
    pub(crate) fn find(&self, row: Option<&Row>, now: Ticks) -> Result<Option<MessageRow>, DecodeError> {
        let message = row.map(MessageRow::open).transpose()?;
        Ok(message.filter(|message| {
            message.receipt_number == self.receipt.number
                && message.chance == self.id.chance
                && message.expires_at > now
        }))
    }
}
