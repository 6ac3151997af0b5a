//! The tables that a SQLite database has.

use crate::schema::drift::{ActualColumn, ActualSchema, ActualTable};
use crate::value::column_kind::ColumnKind;
use rusqlite::{Error, Transaction};
use std::collections::BTreeMap;

/// All tables but those of SQLite.
pub(super) fn actual_schema(transaction: &Transaction<'_>) -> Result<ActualSchema, Error> {
    let encoding: String = transaction.query_row("PRAGMA encoding", [], |row| row.get(0))?;
    let select = "SELECT name, wr FROM pragma_table_list
        WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = transaction.prepare(select)?;
    let names = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let names = names.collect::<Result<Vec<(String, bool)>, Error>>()?;
    let mut tables = BTreeMap::new();
    for (name, is_without_rowid) in names {
        let table = actual_table(transaction, &name, is_without_rowid, &encoding)?;
        tables.insert(name, table);
    }
    Ok(ActualSchema { tables })
}

fn actual_table(
    transaction: &Transaction<'_>,
    name: &str,
    is_without_rowid: bool,
    encoding: &str,
) -> Result<ActualTable, Error> {
    let collations = key_collations(transaction, name)?;
    let select = "SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1)";
    let mut statement = transaction.prepare(select)?;
    let rows = statement.query_map([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let rows = rows.collect::<Result<Vec<(String, String, bool, i64)>, Error>>()?;
    let key_count = rows.iter().filter(|(_, _, _, key)| *key > 0).count();
    let mut key: Vec<(i64, String)> = Vec::new();
    let mut columns = BTreeMap::new();
    for (column, type_text, is_not_null, key_at) in rows {
        if key_at > 0 {
            key.push((key_at, column.clone()));
        }
        // By its history, SQLite lets primary keys be NULL but for these two.
        let is_rowid = key_count == 1 && type_text.eq_ignore_ascii_case("INTEGER");
        let is_nullable = !is_not_null && !(key_at > 0 && (is_without_rowid || is_rowid));
        let kinds = kinds(&type_text);
        let is_text = kinds.contains(&ColumnKind::Text);
        let collation = match collations.get(&column) {
            Some(collation) if collation != "BINARY" => Some(collation.clone()),
            _ if is_text && encoding != "UTF-8" => Some(format!("the bytes of {encoding}")),
            _ => None,
        };
        columns.insert(column, ActualColumn { type_text, kinds, is_nullable, collation });
    }
    key.sort();
    Ok(ActualTable { columns, primary_key: key.into_iter().map(|(_, column)| column).collect() })
}

/// The collations of the columns of the primary key's index, if it has one.
fn key_collations(transaction: &Transaction<'_>, table: &str) -> Result<BTreeMap<String, String>, Error> {
    let select = "SELECT info.name, info.coll
        FROM pragma_index_list(?1) AS list JOIN pragma_index_xinfo(list.name) AS info
        WHERE list.origin = 'pk' AND info.key = 1 AND info.name IS NOT NULL";
    let mut statement = transaction.prepare(select)?;
    let rows = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// The kinds that a declared type can hold, by SQLite's rules of affinity.
fn kinds(type_text: &str) -> Vec<ColumnKind> {
    let upper = type_text.to_ascii_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| upper.contains(part));
    if has(&["INT"]) {
        vec![ColumnKind::Bool, ColumnKind::Int32, ColumnKind::Int64]
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        vec![ColumnKind::Text, ColumnKind::DateTime]
    } else if has(&["BLOB"]) || upper.is_empty() {
        vec![ColumnKind::Binary, ColumnKind::Guid]
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        vec![ColumnKind::Float64]
    } else if upper == "BOOLEAN" || upper == "BOOL" {
        vec![ColumnKind::Bool]
    } else {
        Vec::new()
    }
}
