//! The operation that deletes a table: one small write. The entities are under an id that no name leads to any more.

use crate::error::TableError;
use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowVersion, Rows};

/// Deletes a table's row.
#[derive(Clone, Debug)]
pub(crate) struct DeleteTable {
    /// Where its row is.
    pub(crate) key: RowKey,
}

impl Operation for DeleteTable {
    type Reply = Result<(), TableError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Self::Reply> {
        if rows.point(0).is_none() {
            return Decision::unchanged(Err(TableError::ResourceNotFound));
        }
        Decision { changes: vec![RowChange::Delete { key: self.key.clone() }], reply: Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use partition::Row;

    #[test]
    fn only_a_table_that_is_there_goes() {
        let key = RowKey::new("acct", 0, "table", "people");
        let delete = DeleteTable { key: key.clone() };
        let absent = delete.decide(&Rows::new(vec![vec![]]), RowVersion(1));
        assert!(matches!(absent.reply, Err(TableError::ResourceNotFound)) && absent.changes.is_empty());

        let row = Row { key: key.clone(), version: RowVersion(1), value: bytes::Bytes::new() };
        let present = delete.decide(&Rows::new(vec![vec![row]]), RowVersion(2));
        assert!(present.reply.is_ok());
        assert_eq!(present.changes, vec![RowChange::Delete { key }]);
    }
}
