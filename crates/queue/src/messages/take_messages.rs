//! The operation that gets messages: it takes those that are visible, in the order in which they became so,
//! and hides them from others for a while.
//!
//! It reads a short range from the low water on, and removes the expired messages in it. What always holds:
//! only one client gets a message until its invisible time is over; each get raises its dequeue count.

use crate::error::QueueError;
use crate::messages::front::classify_front;
use crate::messages::message::Message;
use crate::messages::message_changes;
use crate::rows::head_row::HeadRow;
use crate::rows::message_store::{MessageStore, Position};
use base::Ticks;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};
use std::time::Duration;

/// The stored low water may be this much behind, which saves writes. Each get from an empty queue, and the
/// first one after a restart, reads over the tombstones of about that time.
const LOW_WATER_LAG_MAX: Duration = Duration::from_secs(1);

/// Takes messages; the numbers are checked.
#[derive(Clone, Debug)]
pub(crate) struct TakeMessages {
    /// The queue.
    pub(crate) store: MessageStore,
    /// The queue's low water, as far as it is known.
    pub(crate) low_water: Ticks,
    /// The last instant that is read: the time at which the request was made.
    pub(crate) until: Ticks,
    /// A random number for each message, which only the reply carries; their count bounds the messages taken.
    pub(crate) receipt_numbers: Vec<u64>,
    /// Rows to read: [`crate::messages::front::read_count`] at first.
    pub(crate) read_count: usize,
    /// How long they are invisible.
    pub(crate) invisible_for: Duration,
}

/// The reply to a get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakeOutcome {
    /// The messages, oldest first.
    pub(crate) messages: Vec<Message>,
    /// The low water after this.
    pub(crate) low_water: Ticks,
    /// All rows that were read had expired: visible ones may follow.
    pub(crate) may_have_more: bool,
}

impl TakeMessages {
    fn take(
        &self,
        rows: &Rows,
        version: RowVersion,
    ) -> Result<Decision<Result<TakeOutcome, QueueError>>, QueueError> {
        let now = Ticks(version.0);
        let front = classify_front(rows, self.receipt_numbers.len(), self.read_count, self.until, now)?;
        let mut changes = Vec::with_capacity(front.visible.len() * 3 + front.expired.len() * 2 + 1);
        for position in &front.expired {
            message_changes::remove(&mut changes, &self.store, *position);
        }
        let mut messages = Vec::with_capacity(front.visible.len());
        for ((from, mut row), receipt_number) in front.visible.into_iter().zip(&self.receipt_numbers) {
            let to = Position { visible_at: now.plus(self.invisible_for), insertion: from.insertion };
            row.dequeue_count += 1;
            row.receipt_number = *receipt_number;
            message_changes::relocate(&mut changes, &self.store, from, to, &row);
            messages.push(Message::new(to, row));
        }
        let head = HeadRow::open(rows.point(1))?;
        let known = head.low_water.max(self.low_water);
        let removed = front.expired.len() as u64;
        // Without a change the version is not stored, and a clock that runs backwards could put a message
        // before it.
        let low_water = match changes.is_empty() {
            false => front.low_water,
            true if front.low_water > known.plus(LOW_WATER_LAG_MAX) => front.low_water,
            true => known,
        };
        if removed > 0 || low_water > head.low_water.plus(LOW_WATER_LAG_MAX) {
            let head = head.without(removed).with_low_water(low_water);
            changes.push(head.put(self.store.head_key()));
        }
        let outcome = TakeOutcome { messages, low_water, may_have_more: front.may_have_more };
        Ok(Decision { changes, reply: Ok(outcome) })
    }
}

impl Operation for TakeMessages {
    type Reply = Result<TakeOutcome, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        let range = self.store.messages_between(self.low_water, self.until);
        vec![Read::Range { range, limit: self.read_count }, Read::Point(self.store.head_key())]
    }

    fn gives_back(&self) -> bool {
        // A consumer takes a message before it deletes it, so a full disk must not refuse the get.
        true
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        self.take(rows, version).unwrap_or_else(|error| Decision::unchanged(Err(error)))
    }
}
