//! The operation that shows the messages that a get would take, and takes none.
//!
//! It is an operation and not a scan, so that what is visible is decided by the same time as for a get: right after a put
//! the message is there to be peeked at.

use crate::error::QueueError;
use crate::message::Message;
use crate::message_store::MessageStore;
use crate::take_messages::{Front, Taken, read_count, sort_front};
use base::Ticks;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};

/// Shows messages; the number is checked.
#[derive(Clone, Debug)]
pub(crate) struct PeekMessages {
    /// The queue.
    pub(crate) store: MessageStore,
    /// A low water that is known already, or where the last peek saw only expired messages.
    pub(crate) from: Ticks,
    /// Now, as far as the requester knows.
    pub(crate) until: Ticks,
    /// How many at most.
    pub(crate) count: usize,
}

impl Operation for PeekMessages {
    type Reply = Result<Taken, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Range {
            range: self.store.messages_between(self.from, self.until),
            limit: read_count(self.count),
        }]
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        let peeked = sort_front(rows, self.count, self.until, Ticks(version.0)).map_err(QueueError::from);
        Decision::unchanged(peeked.map(|Front { visible, low_water, again, .. }| Taken {
            messages: visible.into_iter().map(|(at, version, row)| Message::new(at, version, row)).collect(),
            low_water,
            again,
        }))
    }
}
