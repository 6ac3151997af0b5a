//! The operation that shows the messages that a get would take, and takes none.
//!
//! It is an operation and not a scan, so that what is visible is decided by the same time as for a get: right after a put
//! the message is there to be peeked at.

use crate::error::QueueError;
use crate::message::Message;
use crate::message_store::{MessageStore, Position};
use crate::take_messages::sort_front;
use base::Ticks;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};

/// Shows messages; the number is checked.
#[derive(Clone, Debug)]
pub(crate) struct PeekMessages {
    /// The queue.
    pub(crate) store: MessageStore,
    /// Where to begin: at a low water that is known already, or behind the expired messages that the last peek saw.
    pub(crate) from: Position,
    /// Now, as far as the requester knows.
    pub(crate) until: Ticks,
    /// How many at most.
    pub(crate) count: usize,
    /// Rows to read, as for a get.
    pub(crate) read_count: usize,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peeked {
    /// The messages, oldest first.
    pub(crate) messages: Vec<Message>,
    /// All that was read had expired, and more may be there, from here on.
    pub(crate) go_on: Option<Position>,
}

impl Operation for PeekMessages {
    type Reply = Result<Peeked, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Range { range: self.store.messages_from(self.from, self.until), limit: self.read_count }]
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        let front = sort_front(rows, self.count, self.read_count, self.until, Ticks(version.0));
        Decision::unchanged(front.map_err(QueueError::from).map(|front| {
            let last = front.expired.last().filter(|_| front.again);
            let visible = front.visible.into_iter();
            Peeked {
                go_on: last.and_then(|last| last.next()),
                messages: visible.map(|(at, row)| Message::new(at, row)).collect(),
            }
        }))
    }
}
