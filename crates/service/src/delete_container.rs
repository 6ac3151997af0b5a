//! The operation that deletes a container: one small write. Its objects are under an id that no name leads to
//! any more; whoever deletes retires that id (`retired_containers`), so that they go in the background.

use bytes::Bytes;
use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowVersion, Rows};

/// Deletes a container's row.
#[derive(Clone, Debug)]
pub struct DeleteContainer {
    /// Where its row is.
    pub key: RowKey,
}

impl Operation for DeleteContainer {
    /// What its row held, if it was there: the id lies in it.
    type Reply = Option<Bytes>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Self::Reply> {
        let Some(row) = rows.point(0) else { return Decision::unchanged(None) };
        let changes = vec![RowChange::Delete { key: self.key.clone() }];
        Decision { changes, reply: Some(row.value.clone()) }
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
        assert!(absent.reply.is_none() && absent.changes.is_empty());

        let row = Row { key: key.clone(), version: RowVersion(1), value: Bytes::from_static(b"id") };
        let present = delete.decide(&Rows::new(vec![vec![row]]), RowVersion(2));
        assert_eq!(present.reply.as_deref(), Some(&b"id"[..]));
        assert_eq!(present.changes, vec![RowChange::Delete { key }]);
    }
}
