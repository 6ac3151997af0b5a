//! What clients see of a message.

use crate::messages::message_id::{MessageId, PopReceipt};
use crate::rows::message_row::{MessageRow, NEVER};
use crate::rows::message_store::Position;
use base::Ticks;
use bytes::Bytes;
use service::TICKS_MAX;

/// A message after its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// When it was put.
    pub inserted_at: Ticks,
    /// When it expires; the last possible instant if never.
    pub expires_at: Ticks,
    /// From when on a get returns it.
    pub visible_at: Ticks,
    /// How often a get has returned it.
    pub dequeue_count: u64,
    /// Only sent to the client that made the last change.
    pub receipt: PopReceipt,
    /// UTF-8.
    pub text: Bytes,
}

impl Message {
    /// The message in `row`, which lies at `position`.
    pub(crate) fn new(position: Position, row: MessageRow) -> Self {
        Message {
            id: MessageId { insertion: position.insertion, chance: row.chance },
            inserted_at: Ticks(position.insertion),
            expires_at: if row.expires_at == NEVER { TICKS_MAX } else { row.expires_at },
            visible_at: position.visible_at,
            dequeue_count: row.dequeue_count,
            receipt: PopReceipt { visible_at: position.visible_at, number: row.receipt_number },
            text: row.text,
        }
    }
}

/// The reply to an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdatedMessage {
    /// The new receipt.
    pub receipt: PopReceipt,
    /// From when on a get returns the message.
    pub visible_at: Ticks,
}
