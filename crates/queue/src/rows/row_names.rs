//! Names of queues and messages from their stored rows, for the offline check and repair.

use crate::messages::message_id::MessageId;
use crate::rows::message_store::insertion_of;
use crate::rows::queue_row::QueueRow;
use partition::key::parse_row_key;

/// Characters of a message's id that its row's key determines: those of its insertion.
const ID_START_LEN: usize = 18;

/// The name of a row in the Message object table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageName {
    /// The account.
    pub account: String,
    /// The queue, by the id of its messages.
    pub messages_id: u64,
    /// The start of the message's id, its first three groups; the rest is in the row's value. `None`: the row
    /// is the queue's counters, or of no known kind.
    pub id_start: Option<String>,
}

/// The name of the row with this key; `None`: it is no row key.
pub fn message_name_of(key: &[u8]) -> Option<MessageName> {
    let parts = parse_row_key(key)?;
    let id_start = insertion_of(&parts.object_name).map(|insertion| {
        let mut text = MessageId { insertion, chance: 0 }.text();
        text.truncate(ID_START_LEN);
        text
    });
    Some(MessageName { account: parts.account, messages_id: parts.container_id, id_start })
}

/// Messages id and name of a queue from its row in the Container object table; `None`: the row is malformed.
pub fn queue_name_of(row: &[u8]) -> Option<(u64, String)> {
    let row = QueueRow::decode(row).ok()?;
    Some((row.messages_id, row.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::message_store::{MessageStore, Position};
    use base::Ticks;

    #[test]
    fn messages_are_named_by_the_start_of_their_ids() {
        let store = MessageStore { account: "acct".to_owned(), messages_id: 7 };
        let insertion = 0x1122_3344_5566_7788;
        let id = MessageId { insertion, chance: 9 }.text();
        let moved = Position { visible_at: Ticks(5), insertion };
        for (key, has_id) in
            [(store.message_key(moved), true), (store.away_key(insertion), true), (store.head_key(), false)]
        {
            let name = message_name_of(key.as_bytes()).unwrap();
            assert_eq!((name.account.as_str(), name.messages_id), ("acct", 7));
            assert_eq!(name.id_start.is_some(), has_id, "{key:?}");
            assert!(
                name.id_start.is_none_or(|start| start == "11223344-5566-7788" && id.starts_with(&start))
            );
        }
        assert_eq!((message_name_of(b"acct"), queue_name_of(b"?")), (None, None));
    }
}
