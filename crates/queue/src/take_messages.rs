//! The operation that gets messages: it takes those that are visible, in the order in which they became so, and hides
//! them from others for a while.
//!
//! It reads a short range from the low water on. Expired messages that it meets are removed in passing. What always
//! holds: a message is given to one taker only, until its invisible time is over; each taking counts.

use crate::error::QueueError;
use crate::head_row::HeadRow;
use crate::message::Message;
use crate::message_changes;
use crate::message_row::MessageRow;
use crate::message_store::{MessageStore, Position, position_of};
use base::Ticks;
use base::codec::DecodeError;
use partition::{Decision, ObjectTable, Operation, Read, RowVersion, Rows};
use std::time::Duration;

/// Rows that are read besides those that are asked for: the first that stays tells the low water, and some may have
/// expired.
const SPARE_ROW_COUNT: usize = 8;

/// While all that is read has expired, each next read is larger by this factor, up to so many rows: each that removes
/// some waits for a sync of its own.
const READ_GROWTH: usize = 4;
pub(crate) const READ_COUNT_MAX: usize = 512;

/// The stored low water may be this much behind: traces of about that time are walked over by each get from an empty
/// queue, and once after a restart.
const LOW_WATER_LAG_MAX: Duration = Duration::from_secs(1);

/// Takes messages; the numbers are checked.
#[derive(Clone, Debug)]
pub(crate) struct TakeMessages {
    /// The queue.
    pub(crate) store: MessageStore,
    /// A low water that is known already.
    pub(crate) low_water: Ticks,
    /// Now, as far as the requester knows: the last instant that is read.
    pub(crate) until: Ticks,
    /// Chance that only the taker is told: a number for each message, and so many at most.
    pub(crate) receipt_numbers: Vec<u64>,
    /// Rows to read: [`read_count`] at first.
    pub(crate) read_count: usize,
    /// How long they are invisible.
    pub(crate) invisible_for: Duration,
}

/// What was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The messages, oldest first.
    pub(crate) messages: Vec<Message>,
    /// The low water after this.
    pub(crate) low_water: Ticks,
    /// All that was read had expired: more may be there.
    pub(crate) again: bool,
}

/// What the rows at the front of a queue are, for getting and peeking alike.
pub(crate) struct Front {
    /// Messages that are visible.
    pub(crate) visible: Vec<(Position, MessageRow)>,
    /// Where messages lie that have expired.
    pub(crate) expired: Vec<Position>,
    /// What is now before every message that was not listed.
    pub(crate) low_water: Ticks,
    /// Only expired ones were read, and more may be there.
    pub(crate) again: bool,
}

/// Which of the rows that the first read found, a range of up to `read_count` from the front up to `until`, are visible at
/// `now`; at most `count`.
pub(crate) fn sort_front(
    rows: &Rows,
    count: usize,
    read_count: usize,
    until: Ticks,
    now: Ticks,
) -> Result<Front, DecodeError> {
    let read = rows.range(0);
    let last = until.min(now);
    let mut front = Front { visible: Vec::new(), expired: Vec::new(), low_water: last, again: false };
    for row in read {
        let position = position_of(row.key.as_bytes()).ok_or(DecodeError("message key"))?;
        if position.visible_at > last {
            return Ok(front);
        }
        let message = MessageRow::open(row)?;
        if message.expires_at <= now {
            front.expired.push(position);
        } else if front.visible.len() < count {
            front.visible.push((position, message));
        } else {
            front.low_water = position.visible_at;
            return Ok(front);
        }
    }
    if let Some(row) = read_count.checked_sub(1).and_then(|last| read.get(last)) {
        // There may be more, also with the same instant.
        let position = position_of(row.key.as_bytes()).ok_or(DecodeError("message key"))?;
        front.low_water = position.visible_at;
        front.again = front.visible.is_empty();
    }
    Ok(front)
}

/// Rows to read from the front for `count` messages.
pub(crate) fn read_count(count: usize) -> usize {
    count + SPARE_ROW_COUNT
}

/// Rows to read after all of the last `read_count` had expired.
pub(crate) fn next_read_count(read_count: usize) -> usize {
    read_count.saturating_mul(READ_GROWTH).min(READ_COUNT_MAX)
}

impl TakeMessages {
    fn take(
        &self,
        rows: &Rows,
        version: RowVersion,
    ) -> Result<Decision<Result<Taken, QueueError>>, QueueError> {
        let now = Ticks(version.0);
        let front = sort_front(rows, self.receipt_numbers.len(), self.read_count, self.until, now)?;
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
        // Without a change the version is not kept, and a clock that runs backwards could put a message before it.
        let low_water = match changes.is_empty() {
            false => front.low_water,
            true if front.low_water > known.plus(LOW_WATER_LAG_MAX) => front.low_water,
            true => known,
        };
        if removed > 0 || low_water > head.low_water.plus(LOW_WATER_LAG_MAX) {
            let head = head.without(removed).with_low_water(low_water);
            changes.push(head.put(self.store.head_key()));
        }
        let taken = Taken { messages, low_water, again: front.again };
        Ok(Decision { changes, reply: Ok(taken) })
    }
}

impl Operation for TakeMessages {
    type Reply = Result<Taken, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Message
    }

    fn reads(&self) -> Vec<Read> {
        let range = self.store.messages_between(self.low_water, self.until);
        vec![Read::Range { range, limit: self.read_count }, Read::Point(self.store.head_key())]
    }

    fn gives_back(&self) -> bool {
        // Whoever works a queue off takes a message before deleting it.
        true
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        self.take(rows, version).unwrap_or_else(|error| Decision::unchanged(Err(error)))
    }
}
