//! What clients see of a message.

use crate::message_id::{MessageId, PopReceipt};
use crate::message_row::{MessageRow, NEVER};
use crate::message_store::Position;
use base::Ticks;
use bytes::Bytes;
use service::TICKS_MAX;

/// A message, as its last change left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// When it was put.
    pub inserted_at: Ticks,
    /// When it vanishes; the last instant that there is, if never.
    pub expires_at: Ticks,
    /// From when on it can be got.
    pub visible_at: Ticks,
    /// How often it was got.
    pub dequeue_count: u64,
    /// For whoever made the last change; others are not told.
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

/// What an update leaves its sender with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdatedMessage {
    /// The new receipt.
    pub receipt: PopReceipt,
    /// From when on the message can be got.
    pub visible_at: Ticks,
}
