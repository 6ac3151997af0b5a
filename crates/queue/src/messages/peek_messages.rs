//! The operation that shows the messages that a get would take, and takes none.
//!
//! It is an operation and not a scan, so that the same clock as for a get decides what is visible: a peek
//! sees a message right after its put.

use crate::error::QueueError;
use crate::messages::front::classify_front;
use crate::messages::message::Message;
use crate::rows::message_store::{MessageStore, Position};
use base::Ticks;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};

/// Shows messages; the number is checked.
#[derive(Clone, Debug)]
pub(crate) struct PeekMessages {
    /// The queue.
    pub(crate) store: MessageStore,
    /// Where to begin: at the known low water, or behind the expired messages that the last peek read.
    pub(crate) from: Position,
    /// The last instant that is read: the time at which the request was made.
    pub(crate) until: Ticks,
    /// Messages to return at most.
    pub(crate) count: usize,
    /// Rows to read, as for a get.
    pub(crate) read_count: usize,
}

/// The reply to a peek.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeekOutcome {
    /// The messages, oldest first.
    pub(crate) messages: Vec<Message>,
    /// All rows that were read had expired; the next peek continues here.
    pub(crate) continue_at: Option<Position>,
}

impl Operation for PeekMessages {
    type Reply = Result<PeekOutcome, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Range { range: self.store.messages_from(self.from, self.until), limit: self.read_count }]
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        let front = classify_front(rows, self.count, self.read_count, self.until, Ticks(version.0));
        Decision::unchanged(front.map_err(QueueError::from).map(|front| {
            let last = front.expired.last().filter(|_| front.may_have_more);
            let visible = front.visible.into_iter();
            PeekOutcome {
                continue_at: last.and_then(|last| last.next()),
                messages: visible.map(|(at, row)| Message::new(at, row)).collect(),
            }
        }))
    }
}
