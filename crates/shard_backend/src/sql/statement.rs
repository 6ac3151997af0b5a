//! The texts of statements that databases have in common.

use super::window::Condition;
use crate::schema::table::TableSchema;

/// A name in SQL.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The names of columns, by their place in the table.
pub(crate) fn names(table: &TableSchema, columns: &[usize]) -> String {
    let names = columns.iter().filter_map(|index| table.columns().get(*index));
    names.map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
}

/// The names of all columns.
pub(crate) fn all_names(table: &TableSchema) -> String {
    table.columns().iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
}

/// The columns of the key, as they are compared: `compared` makes one of a column's place.
fn key_columns(table: &TableSchema, compared: impl Fn(usize) -> String) -> Vec<String> {
    table.row_key().iter().map(|index| compared(*index)).collect()
}

/// ` WHERE … ORDER BY …` of rows in the order of their keys; see [`where_of`].
pub(crate) fn where_in_order(
    table: &TableSchema,
    conditions: &[Condition],
    compared: impl Fn(usize) -> String,
    parameter: impl Fn(usize, usize) -> String,
) -> String {
    let filter = where_of(table, conditions, &compared, parameter);
    format!("{filter} ORDER BY {}", key_columns(table, compared).join(", "))
}

/// ` WHERE …`, or nothing. Parameters are numbered from 1 in the order of the conditions' values; `parameter`
/// makes one's text of its number and its column's place.
pub(crate) fn where_of(
    table: &TableSchema,
    conditions: &[Condition],
    compared: impl Fn(usize) -> String,
    parameter: impl Fn(usize, usize) -> String,
) -> String {
    let columns = key_columns(table, compared);
    let mut number = 0;
    let texts: Vec<String> = conditions
        .iter()
        .map(|condition| {
            let left = columns.iter().take(condition.values.len()).cloned().collect::<Vec<_>>();
            let right = table.row_key().iter().take(condition.values.len()).map(|index| {
                number += 1;
                parameter(number, *index)
            });
            let right = right.collect::<Vec<_>>();
            format!("({}) {} ({})", left.join(", "), condition.comparison, right.join(", "))
        })
        .collect();
    if texts.is_empty() { String::new() } else { format!(" WHERE {}", texts.join(" AND ")) }
}

/// ` ON CONFLICT …`: a row takes the place of the one with its key.
pub(crate) fn on_conflict(table: &TableSchema) -> String {
    let others = (0..table.columns().len()).filter(|index| !table.row_key().contains(index));
    let sets = others.filter_map(|index| table.columns().get(index)).map(|column| {
        let name = quoted(&column.name);
        format!("{name} = excluded.{name}")
    });
    let sets = sets.collect::<Vec<_>>().join(", ");
    let action = if sets.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {sets}") };
    format!(" ON CONFLICT ({}) DO {action}", names(table, table.primary_key()))
}
