//! The operation that creates a table: its row gives the name an id that was never used before.

use crate::error::TableError;
use crate::tables::table_row::encode_table_row;
use base::Ticks;
use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowVersion, Rows};

/// Creates a table; its name is checked.
#[derive(Clone, Debug)]
pub(crate) struct CreateTable {
    /// The key of its row.
    pub(crate) key: RowKey,
    /// The name as sent.
    pub(crate) name: String,
}

impl Operation for CreateTable {
    type Reply = Result<(), TableError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        if rows.point(0).is_some() {
            return Decision::unchanged(Err(TableError::TableAlreadyExists));
        }
        let put = RowChange::Put {
            key: self.key.clone(),
            value: encode_table_row(&self.name, version.0, Ticks(version.0), &[]),
        };
        Decision { changes: vec![put], reply: Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::table_row::TableRow;
    use partition::Row;
    use service::container::container_key;

    #[test]
    fn a_new_table_gets_the_version_as_its_id() {
        let key = container_key("acct", service::SERVICE_TABLE, "People");
        let create = CreateTable { key: key.clone(), name: "People".to_owned() };
        let decision = create.decide(&Rows::new(vec![vec![]]), RowVersion(77));
        assert!(decision.reply.is_ok());
        let [RowChange::Put { key: put_key, value }] = &decision.changes[..] else {
            panic!("{:?}", decision.changes)
        };
        let row = TableRow::open(value).unwrap();
        assert_eq!((put_key, row.name, row.container_id, row.created_at), (&key, "People", 77, Ticks(77)));

        let there = Row { key, version: RowVersion(77), value: value.clone() };
        let again = create.decide(&Rows::new(vec![vec![there]]), RowVersion(78));
        assert!(matches!(again.reply, Err(TableError::TableAlreadyExists)));
        assert!(again.changes.is_empty());
    }
}
