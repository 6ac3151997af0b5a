//! The row changes that put, move and remove a message.

use crate::message_row::MessageRow;
use crate::message_store::{MessageStore, Position};
use partition::RowChange;

/// Puts a new message.
pub(crate) fn put(changes: &mut Vec<RowChange>, store: &MessageStore, at: Position, row: &MessageRow) {
    changes.push(RowChange::Put { key: store.message_key(at), value: row.encode() });
}

/// Moves a message that lies at `from`; `row` is what it becomes.
pub(crate) fn relocate(
    changes: &mut Vec<RowChange>,
    store: &MessageStore,
    from: Position,
    to: Position,
    row: &MessageRow,
) {
    // One operation changes a row once.
    if from != to {
        changes.push(RowChange::Delete { key: store.message_key(from) });
    }
    changes.push(RowChange::Put { key: store.message_key(to), value: row.encode() });
}

/// Removes a message that lies at `at`, and the mark that an earlier build may have made of it.
pub(crate) fn remove(changes: &mut Vec<RowChange>, store: &MessageStore, at: Position) {
    changes.push(RowChange::Delete { key: store.message_key(at) });
    if !at.is_birthplace() {
        changes.push(RowChange::Delete { key: store.away_key(at.insertion) });
    }
}
