//! Where the rows of a queue's messages lie in the Message object table.
//!
//! ```text
//! row key   = (account, messages id, "", object name): one partition name holds a whole queue
//! head      = "h"                                      counters of the queue, see head_row
//! away      = "i" hex16(insertion)                     marker of earlier builds for a message that was moved
//! message   = "m" hex16(visible at) hex16(insertion)   in the order in which messages become visible
//!             hex16(x) is x in 16 lower-case hexadecimal digits
//! ```
//!
//! A put without invisible time stores a message at the position whose instant is its insertion, its first
//! position. What always holds: a message has one row. Earlier builds stored an away marker for each message
//! that was not at its first position, to distinguish a receipt that is not the last one from a deleted
//! message. Markers are not written or read any more; each is removed with its message.

use base::Ticks;
use partition::{KeyRange, ObjectTable, PartitionError, Partitions, RowKey};

/// The partition name of all rows of a queue.
const PARTITION_NAME: &str = "";
const HEAD: &str = "h";
/// Sorts after every message.
const AFTER_MESSAGES: &str = "n";
/// Hexadecimal digits of a position in a row key.
const POSITION_LEN: usize = 32;
/// Bytes that end a row key, after its object name.
const TERMINATOR_LEN: usize = 2;

/// The rows of one queue's messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageStore {
    /// The storage account.
    pub(crate) account: String,
    /// Changes when the queue is cleared.
    pub(crate) messages_id: u64,
}

/// Where a message lies in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// From when on a get returns it.
    pub(crate) visible_at: Ticks,
    /// The version of its insertion.
    pub(crate) insertion: u64,
}

impl Position {
    /// Whether a message put without invisible time has never been moved.
    pub(crate) fn is_first_position(self) -> bool {
        self.visible_at.0 == self.insertion
    }

    /// Before all messages that become visible then.
    pub(crate) fn first_at(visible_at: Ticks) -> Self {
        Position { visible_at, insertion: 0 }
    }

    /// The position right after this one; `None`: there is none.
    pub(crate) fn next(self) -> Option<Self> {
        match self.insertion.checked_add(1) {
            Some(insertion) => Some(Position { insertion, ..self }),
            None => self.visible_at.0.checked_add(1).map(|after| Position::first_at(Ticks(after))),
        }
    }
}

impl MessageStore {
    fn key(&self, object_name: &str) -> RowKey {
        RowKey::new(&self.account, self.messages_id, PARTITION_NAME, object_name)
    }

    /// The time that decides which of the queue's messages are visible or have expired. It is that of their
    /// range and not the clock's, so that a get sees every message that was put, also after the clock was set
    /// back.
    pub(crate) fn now(&self, partitions: &Partitions) -> Result<Ticks, PartitionError> {
        partitions.now(ObjectTable::Message, &self.head_key())
    }

    /// The queue's counters.
    pub(crate) fn head_key(&self) -> RowKey {
        self.key(HEAD)
    }

    /// The away marker that earlier builds stored for a message that was moved.
    pub(crate) fn away_key(&self, insertion: u64) -> RowKey {
        let mut name = String::with_capacity(1 + 16);
        name.push('i');
        push_hex(&mut name, insertion);
        self.key(&name)
    }

    /// The row of a message.
    pub(crate) fn message_key(&self, position: Position) -> RowKey {
        let mut name = String::with_capacity(1 + POSITION_LEN);
        name.push('m');
        push_hex(&mut name, position.visible_at.0);
        push_hex(&mut name, position.insertion);
        self.key(&name)
    }

    /// All messages that become visible from the instant `first` to the instant `last`, both included.
    pub(crate) fn messages_between(&self, first: Ticks, last: Ticks) -> KeyRange {
        self.messages_from(Position::first_at(first), last)
    }

    /// All messages from the position `first` on that become visible up to the instant `last`, both included.
    pub(crate) fn messages_from(&self, first: Position, last: Ticks) -> KeyRange {
        let start = self.message_key(first);
        let end = match last.0.checked_add(1) {
            Some(after) => self.message_key(Position::first_at(Ticks(after))),
            None => self.key(AFTER_MESSAGES),
        };
        KeyRange { start: start.as_bytes().clone(), end: Some(end.as_bytes().clone()) }
    }
}

/// The position in the key of a message's row.
pub(crate) fn position_of(key: &[u8]) -> Option<Position> {
    let end = key.len().checked_sub(TERMINATOR_LEN)?;
    let digits = key.get(end.checked_sub(POSITION_LEN)?..end)?;
    let (visible_at, insertion) = digits.split_at(POSITION_LEN / 2);
    Some(Position { visible_at: Ticks(parse_hex(visible_at)?), insertion: parse_hex(insertion)? })
}

/// The insertion in the object name of a message's row or of an away marker of earlier builds.
pub(crate) fn insertion_of(object_name: &str) -> Option<u64> {
    let digits = match object_name.split_at_checked(1)? {
        ("m", digits) if digits.len() == POSITION_LEN => digits.split_at_checked(POSITION_LEN / 2)?.1,
        ("i", digits) if digits.len() == POSITION_LEN / 2 => digits,
        _ => return None,
    };
    parse_hex(digits.as_bytes())
}

fn push_hex(out: &mut String, number: u64) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for shift in (0..64).step_by(4).rev() {
        out.push(char::from(HEX[(number >> shift & 15) as usize]));
    }
}

fn parse_hex(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, &digit| match digit {
        b'0'..=b'9' => Some(number << 4 | u64::from(digit - b'0')),
        b'a'..=b'f' => Some(number << 4 | u64::from(digit - b'a' + 10)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn store() -> MessageStore {
        MessageStore { account: "acct".to_owned(), messages_id: 5 }
    }

    #[test]
    fn names_as_drawn() {
        let name = |key: RowKey| key.parts().map(|parts| (parts.partition_name, parts.object_name));
        let position = Position { visible_at: Ticks(0x1f), insertion: 2 };
        let message = "m000000000000001f0000000000000002".to_owned();
        assert_eq!(name(store().message_key(position)), Some((String::new(), message)));
        assert_eq!(name(store().away_key(2)), Some((String::new(), "i0000000000000002".to_owned())));
    }

    #[test]
    fn only_messages_are_in_the_range_of_messages() {
        let range = store().messages_between(Ticks(0), Ticks(u64::MAX));
        assert!(!range.contains(store().head_key().as_bytes()));
        assert!(!range.contains(store().away_key(u64::MAX).as_bytes()));
        let last = Position { visible_at: Ticks(u64::MAX), insertion: u64::MAX };
        assert!(range.contains(store().message_key(last).as_bytes()));
        let other = MessageStore { messages_id: 6, ..store() };
        assert!(
            !range.contains(other.message_key(Position { visible_at: Ticks(1), insertion: 1 }).as_bytes())
        );
    }

    proptest! {
        #[test]
        fn positions_come_back_and_sort(a: (u64, u64), b: (u64, u64)) {
            let position = |(visible_at, insertion)| Position { visible_at: Ticks(visible_at), insertion };
            let (a, b) = (position(a), position(b));
            let (key_a, key_b) = (store().message_key(a), store().message_key(b));
            prop_assert_eq!(position_of(key_a.as_bytes()), Some(a));
            prop_assert_eq!(key_a.cmp(&key_b), a.cmp(&b));
            let range = store().messages_between(Ticks(0), a.visible_at);
            prop_assert_eq!(range.contains(key_b.as_bytes()), b.visible_at <= a.visible_at);
            let range = store().messages_from(a, Ticks(u64::MAX));
            prop_assert_eq!(range.contains(key_b.as_bytes()), a <= b);
            prop_assert!(a.next().is_none_or(|next| a < next && (b <= a || next <= b)));
        }

        #[test]
        fn any_key_has_a_position_or_none(key: Vec<u8>) {
            let _ = position_of(&key);
        }
    }
}
