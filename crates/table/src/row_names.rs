//! Names of tables and entities from their stored rows, for the offline check and repair.

use crate::tables::table_row::TableRow;
use partition::key::parse_row_key;

/// An entity by its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityName {
    /// Its account.
    pub account: String,
    /// Its table, by id.
    pub table_id: u64,
    /// Its PartitionKey.
    pub partition_key: String,
    /// Its RowKey.
    pub row_key: String,
}

/// The entity whose row has this key; `None`: it is no row key.
pub fn entity_name_of(key: &[u8]) -> Option<EntityName> {
    let parts = parse_row_key(key)?;
    Some(EntityName {
        account: parts.account,
        table_id: parts.container_id,
        partition_key: parts.partition_name,
        row_key: parts.object_name,
    })
}

/// Id and name of a table from its row in the Container object table; `None`: the row is malformed.
pub fn table_name_of(row: &[u8]) -> Option<(u64, String)> {
    let row = TableRow::open(row).ok()?;
    Some((row.container_id, row.name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::table_row::encode_table_row;
    use base::Ticks;
    use partition::RowKey;

    #[test]
    fn entities_and_tables_have_their_names() {
        let key = RowKey::new("acct", 7, "p", "r");
        let expected = EntityName {
            account: "acct".to_owned(),
            table_id: 7,
            partition_key: "p".to_owned(),
            row_key: "r".to_owned(),
        };
        assert_eq!(entity_name_of(key.as_bytes()), Some(expected));
        assert_eq!(entity_name_of(b"acct"), None);
        let row = encode_table_row("People", 7, Ticks(1), &[]);
        assert_eq!(table_name_of(&row), Some((7, "People".to_owned())));
        assert_eq!(table_name_of(b"?"), None);
    }
}
