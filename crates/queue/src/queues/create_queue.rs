//! The operation that creates a queue: its row gives the name an id for its messages that was never used
//! before.

use crate::error::QueueError;
use crate::rows::queue_row::{Metadata, QueueRow};
use base::Ticks;
use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowVersion, Rows};

/// Creates a queue; name and metadata are checked.
#[derive(Clone, Debug)]
pub(crate) struct CreateQueue {
    /// The key of its row.
    pub(crate) key: RowKey,
    /// The name.
    pub(crate) name: String,
    /// Metadata that the client attached.
    pub(crate) metadata: Metadata,
}

impl CreateQueue {
    fn create(&self, rows: &Rows, version: RowVersion) -> Result<Option<RowChange>, QueueError> {
        if let Some(row) = rows.point(0) {
            let same = is_same(&QueueRow::decode(&row.value)?.metadata, &self.metadata);
            return if same { Ok(None) } else { Err(QueueError::QueueAlreadyExists) };
        }
        let row = QueueRow {
            name: self.name.clone(),
            messages_id: version.0,
            created_at: Ticks(version.0),
            metadata: self.metadata.clone(),
            policies: Vec::new(),
        };
        Ok(Some(RowChange::Put { key: self.key.clone(), value: row.encode() }))
    }
}

/// Whether two lists are the same, with names compared without case.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    let names = |one: &Metadata| {
        let mut pairs: Vec<_> =
            one.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
        pairs.sort_unstable();
        pairs
    };
    names(one) == names(other)
}

impl Operation for CreateQueue {
    /// Whether it is new.
    type Reply = Result<bool, QueueError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        match self.create(rows, version) {
            Ok(change) => {
                let is_new = change.is_some();
                Decision { changes: change.into_iter().collect(), reply: Ok(is_new) }
            }
            Err(error) => Decision::unchanged(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use partition::Row;
    use service::container::container_key;

    #[test]
    fn a_name_is_taken_unless_the_metadata_is_the_same() {
        let key = container_key("acct", service::SERVICE_QUEUE, "tasks");
        let create = |value: &str| CreateQueue {
            key: key.clone(),
            name: "tasks".to_owned(),
            metadata: vec![("k".to_owned(), value.to_owned())],
        };
        let decision = create("v").decide(&Rows::new(vec![vec![]]), RowVersion(77));
        assert!(matches!(decision.reply, Ok(true)));
        let [RowChange::Put { value, .. }] = &decision.changes[..] else { panic!("{decision:?}") };
        assert_eq!(QueueRow::decode(value).unwrap().messages_id, 77);

        let there = Row { key: key.clone(), version: RowVersion(77), value: value.clone() };
        let again = |value| create(value).decide(&Rows::new(vec![vec![there.clone()]]), RowVersion(78));
        assert!(matches!(again("v").reply, Ok(false)) && again("v").changes.is_empty());
        assert!(matches!(again("w").reply, Err(QueueError::QueueAlreadyExists)));
        assert!(again("w").changes.is_empty());
        let in_capitals = CreateQueue { metadata: vec![("K".to_owned(), "v".to_owned())], ..create("v") };
        let there = Rows::new(vec![vec![there.clone()]]);
        assert!(matches!(in_capitals.decide(&there, RowVersion(78)).reply, Ok(false)));
    }
}
