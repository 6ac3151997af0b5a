//! The row changes that put, move and remove a message.

use crate::rows::message_row::MessageRow;
use crate::rows::message_store::{MessageStore, Position};
use partition::RowChange;

/// Puts a new message.
pub(crate) fn put(changes: &mut Vec<RowChange>, store: &MessageStore, at: Position, row: &MessageRow) {
    changes.push(RowChange::Put { key: store.message_key(at), value: row.encode() });
}

/// Moves a message from one position to another, where it is stored as `row`.
pub(crate) fn relocate(
    changes: &mut Vec<RowChange>,
    store: &MessageStore,
    from: Position,
    to: Position,
    row: &MessageRow,
) {
    // An operation may change a row only once.
    if from != to {
        changes.push(RowChange::Delete { key: store.message_key(from) });
    }
    changes.push(RowChange::Put { key: store.message_key(to), value: row.encode() });
}

/// Removes the message at `at`, and the away marker that an earlier build may have stored for it.
pub(crate) fn remove(changes: &mut Vec<RowChange>, store: &MessageStore, at: Position) {
    changes.push(RowChange::Delete { key: store.message_key(at) });
    if !at.is_first_position() {
        changes.push(RowChange::Delete { key: store.away_key(at.insertion) });
    }
}
