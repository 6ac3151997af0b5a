//! The row changes that put, move and remove a message: its row and its mark, always together.

use crate::message_row::MessageRow;
use crate::message_store::{MessageStore, Position};
use partition::RowChange;

/// Puts a new message.
pub(crate) fn put(changes: &mut Vec<RowChange>, store: &MessageStore, at: Position, row: &MessageRow) {
    changes.push(RowChange::Put { key: store.message_key(at), value: row.encode() });
    if !at.is_birthplace() {
        changes.push(RowChange::Put { key: store.away_key(at.insertion), value: row.encode_away() });
    }
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
    if from.is_birthplace() && !to.is_birthplace() {
        changes.push(RowChange::Put { key: store.away_key(to.insertion), value: row.encode_away() });
    }
}

/// Removes a message that lies at `at`.
pub(crate) fn remove(changes: &mut Vec<RowChange>, store: &MessageStore, at: Position) {
    changes.push(RowChange::Delete { key: store.message_key(at) });
    if !at.is_birthplace() {
        changes.push(RowChange::Delete { key: store.away_key(at.insertion) });
    }
}
