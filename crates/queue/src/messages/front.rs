//! The front of a queue: which of the rows from the low water on are visible, which have expired, and how
//! many rows a get or a peek reads.

use crate::rows::message_row::MessageRow;
use crate::rows::message_store::{Position, position_of};
use base::Ticks;
use base::codec::DecodeError;
use partition::Rows;

/// Rows that are read beyond the requested count: the first that stays gives the low water, and some may have
/// expired.
const SPARE_ROW_COUNT: usize = 8;

/// While all rows that are read have expired, each next read is larger by this factor, because each operation
/// that removes rows waits for a sync of its own.
const READ_GROWTH: usize = 4;
/// Rows that one get or peek reads at most.
pub(crate) const READ_COUNT_MAX: usize = 512;

/// The rows at the front of a queue, for a get or a peek.
pub(crate) struct Front {
    /// Messages that are visible.
    pub(crate) visible: Vec<(Position, MessageRow)>,
    /// Positions of expired messages.
    pub(crate) expired: Vec<Position>,
    /// No message that is not listed lies before it.
    pub(crate) low_water: Ticks,
    /// All rows that were read had expired, so visible ones may follow.
    pub(crate) may_have_more: bool,
}

/// Sorts the rows of the operation's first read, a range of up to `read_count` rows from the front up to
/// `until`, into expired ones and up to `count` that are visible at `now`.
pub(crate) fn classify_front(
    rows: &Rows,
    count: usize,
    read_count: usize,
    until: Ticks,
    now: Ticks,
) -> Result<Front, DecodeError> {
    let read = rows.range(0);
    let last = until.min(now);
    let mut front = Front { visible: Vec::new(), expired: Vec::new(), low_water: last, may_have_more: false };
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
        // The range may hold further rows, also with the same instant.
        let position = position_of(row.key.as_bytes()).ok_or(DecodeError("message key"))?;
        front.low_water = position.visible_at;
        front.may_have_more = front.visible.is_empty();
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
