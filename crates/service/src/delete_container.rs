//! The operation that deletes a container: one small write. Its objects are under an id that no name leads to any more.

use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowVersion, Rows};

/// Deletes a container's row.
#[derive(Clone, Debug)]
pub struct DeleteContainer {
    /// Where its row is.
    pub key: RowKey,
}

impl Operation for DeleteContainer {
    /// Whether it was there.
    type Reply = bool;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Self::Reply> {
        if rows.point(0).is_none() {
            return Decision::unchanged(false);
        }
        Decision { changes: vec![RowChange::Delete { key: self.key.clone() }], reply: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use partition::Row;

    #[test]
    fn only_a_container_that_is_there_goes() {
        let key = RowKey::new("acct", 0, "table", "people");
        let delete = DeleteContainer { key: key.clone() };
        let absent = delete.decide(&Rows::new(vec![vec![]]), RowVersion(1));
        assert!(!absent.reply && absent.changes.is_empty());

        let row = Row { key: key.clone(), version: RowVersion(1), value: bytes::Bytes::new() };
        let present = delete.decide(&Rows::new(vec![vec![row]]), RowVersion(2));
        assert!(present.reply);
        assert_eq!(present.changes, vec![RowChange::Delete { key }]);
    }
}
