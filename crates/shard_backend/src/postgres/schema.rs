//! The tables that a Postgres database has.

use super::value::kind_of;
use crate::schema::drift::{ActualColumn, ActualSchema};
use tokio_postgres::{Error, Row, Transaction};

/// Collations that compare texts by their bytes; `UTF-8` orders code points, which is the same.
const BY_BYTES: [&str; 5] = ["C", "POSIX", "C.UTF-8", "C.utf8", "ucs_basic"];

/// Columns of tables that a name without its schema finds, with what the database itself compares texts by.
const COLUMNS: &str = "
    SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), t.typname::text,
        NOT a.attnotnull, co.collname::text, array_position(i.indkey::int2[], a.attnum),
        (SELECT CASE WHEN coalesce(to_jsonb(d)->>'datlocprovider', 'c') = 'i'
            THEN 'ICU, the default of the database' ELSE d.datcollate::text END
            FROM pg_database d WHERE d.datname = current_database())
    FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_collation co ON co.oid = a.attcollation
        LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
    WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid)
        AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)";

/// All tables but those of Postgres.
pub(super) async fn actual_schema(transaction: &Transaction<'_>) -> Result<ActualSchema, Error> {
    let mut actual = ActualSchema::default();
    let mut keys: Vec<(String, i32, String)> = Vec::new();
    for row in transaction.query(COLUMNS, &[]).await? {
        let (table, column): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        if let Some(at) = row.try_get::<_, Option<i32>>(6)? {
            keys.push((table.clone(), at, column.clone()));
        }
        actual.tables.entry(table).or_default().columns.insert(column, actual_column(&row)?);
    }
    keys.sort();
    for (table, _, column) in keys {
        actual.tables.entry(table).or_default().primary_key.push(column);
    }
    Ok(actual)
}

fn actual_column(row: &Row) -> Result<ActualColumn, Error> {
    let type_name: String = row.try_get(3)?;
    let collation: Option<String> = match row.try_get::<_, Option<String>>(5)?.as_deref() {
        Some("default") => row.try_get(7)?,
        other => other.map(str::to_owned),
    };
    Ok(ActualColumn {
        type_text: row.try_get(2)?,
        kinds: kind_of(&type_name).into_iter().collect(),
        is_nullable: row.try_get(4)?,
        collation: collation.filter(|name| !BY_BYTES.contains(&name.as_str())),
    })
}
