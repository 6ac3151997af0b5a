//! The operation that changes a queue's row: its metadata, its policies, or the id of its messages.
//!
//! Clearing a queue is one small write: messages under the old id are unreachable at once, however many they
//! are, and their space is reclaimed in the background.

use crate::error::QueueError;
use crate::rows::queue_row::{Metadata, QueueRow};
use bytes::Bytes;
use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowVersion, Rows};
use service::StoredPolicy;

/// What to change; it is checked.
#[derive(Clone, Debug)]
pub(crate) enum QueueChange {
    /// Replace the metadata.
    Metadata(Metadata),
    /// Replace the policies.
    Policies(Vec<StoredPolicy>),
    /// Give the queue a new messages id, so that it is empty.
    Clear,
}

/// Changes a queue's row.
#[derive(Clone, Debug)]
pub(crate) struct ChangeQueue {
    /// The key of its row.
    pub(crate) key: RowKey,
    /// What to change.
    pub(crate) change: QueueChange,
}

impl ChangeQueue {
    /// The change, and the row before it.
    fn change(&self, rows: &Rows, version: RowVersion) -> Result<(RowChange, Bytes), QueueError> {
        let row = rows.point(0).ok_or(QueueError::QueueNotFound)?;
        let mut queue = QueueRow::decode(&row.value)?;
        match &self.change {
            QueueChange::Metadata(metadata) => queue.metadata.clone_from(metadata),
            QueueChange::Policies(policies) => queue.policies.clone_from(policies),
            QueueChange::Clear => queue.messages_id = version.0,
        }
        let change = RowChange::Put { key: self.key.clone(), value: queue.encode() };
        Ok((change, row.value.clone()))
    }
}

impl Operation for ChangeQueue {
    /// The row before the change.
    type Reply = Result<Bytes, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn gives_back(&self) -> bool {
        matches!(self.change, QueueChange::Clear)
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        match self.change(rows, version) {
            Ok((change, before)) => Decision { changes: vec![change], reply: Ok(before) },
            Err(error) => Decision::unchanged(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;
    use partition::Row;

    #[test]
    fn what_is_not_changed_stays() {
        let key = RowKey::new("acct", 0, "queue", "tasks");
        let queue = QueueRow {
            name: "tasks".to_owned(),
            messages_id: 5,
            created_at: Ticks(4),
            metadata: vec![("k".to_owned(), "v".to_owned())],
            policies: vec![StoredPolicy { id: "p".to_owned(), ..StoredPolicy::default() }],
        };
        let row = Row { key: key.clone(), version: RowVersion(5), value: queue.encode() };
        let decide = |change: QueueChange, found: Vec<Row>| {
            let change = ChangeQueue { key: key.clone(), change };
            let decision = change.decide(&Rows::new(vec![found]), RowVersion(9));
            decision.reply.map(|before| match &decision.changes[..] {
                [RowChange::Put { value, .. }] => {
                    assert_eq!(before, queue.encode());
                    QueueRow::decode(value).unwrap()
                }
                other => panic!("{other:?}"),
            })
        };
        let changed = |change| decide(change, vec![row.clone()]).unwrap();
        assert_eq!(changed(QueueChange::Clear), QueueRow { messages_id: 9, ..queue.clone() });
        assert_eq!(changed(QueueChange::Metadata(vec![])), QueueRow { metadata: vec![], ..queue.clone() });
        assert_eq!(changed(QueueChange::Policies(vec![])), QueueRow { policies: vec![], ..queue.clone() });
        assert!(matches!(decide(QueueChange::Clear, vec![]), Err(QueueError::QueueNotFound)));
    }
}
