//! The operation that replaces a table's stored access policies. Name, id and creation time stay.

use crate::error::TableError;
use crate::tables::table_row::{TableRow, encode_table_row};
use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowVersion, Rows};
use service::StoredPolicy;

/// Replaces all policies of a table; they are checked.
#[derive(Clone, Debug)]
pub(crate) struct SetTablePolicies {
    /// The key of the table's row.
    pub(crate) key: RowKey,
    /// The new policies.
    pub(crate) policies: Vec<StoredPolicy>,
}

impl SetTablePolicies {
    fn change(&self, rows: &Rows) -> Result<RowChange, TableError> {
        let row = rows.point(0).ok_or(TableError::TableNotFound)?;
        let table = TableRow::open(&row.value)?;
        Ok(RowChange::Put {
            key: self.key.clone(),
            value: encode_table_row(table.name, table.container_id, table.created_at, &self.policies),
        })
    }
}

impl Operation for SetTablePolicies {
    type Reply = Result<(), TableError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Self::Reply> {
        match self.change(rows) {
            Ok(change) => Decision { changes: vec![change], reply: Ok(()) },
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
    fn setting_policies_keeps_the_rest_of_the_row() {
        let key = RowKey::new("acct", 0, "table", "people");
        let policy = |id: &str| StoredPolicy { id: id.to_owned(), ..StoredPolicy::default() };
        let set = SetTablePolicies { key: key.clone(), policies: vec![policy("new")] };
        let absent = set.decide(&Rows::new(vec![vec![]]), RowVersion(1));
        assert!(matches!(absent.reply, Err(TableError::TableNotFound)) && absent.changes.is_empty());

        let row = Row {
            key,
            version: RowVersion(1),
            value: encode_table_row("People", 5, Ticks(6), &[policy("old")]),
        };
        let present = set.decide(&Rows::new(vec![vec![row]]), RowVersion(9));
        let [RowChange::Put { value, .. }] = &present.changes[..] else { panic!("{present:?}") };
        assert_eq!(*value, encode_table_row("People", 5, Ticks(6), &[policy("new")]));
    }
}
