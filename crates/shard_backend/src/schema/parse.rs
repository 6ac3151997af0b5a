//! A declared schema out of its TOML.
//!
//! ```toml
//! map = "tenants"                      # the map that spreads the sharded tables
//!
//! [sharded.orders]
//! key = "tenant"                       # the shard key: a column, or a list in the order of the map's key
//! primary_key = ["tenant", "order"]    # holds the shard key
//! [sharded.orders.columns]
//! tenant = "int64"
//! order = "guid"
//! note = "text null"                   # may be NULL
//!
//! [reference.countries]                # the same rows on every shard
//! primary_key = "code"
//! columns = { code = "text", name = "text" }
//! ```
//!
//! What always holds: the first mistake is one error with its line; an unknown key, type or column is named
//! with the nearest that there is.

use super::check_name::{check_name, check_table_name};
use super::schema::Schema;
use super::table::{Column, TableSchema};
use crate::limits::{TABLE_COLUMNS_MAX, TABLES_MAX};
use crate::value::column_kind::ColumnKind;
use settings_file::{Section, SettingsFileError, meant, parse};
use shard_map::{KeyKind, KeyType, Name};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// What a type says behind its kind if the column may be NULL.
const NULLABLE: &str = "null";

impl Schema {
    /// Reads a schema.
    pub fn parse(text: &str) -> Result<Self, SettingsFileError> {
        let parsed = parse(text)?;
        let file = Section::new(text, "the schema", parsed.get_ref(), &["map", "sharded", "reference"])?;
        let (map, at) = match file.text("map")? {
            Some(map) => map,
            None => return Err(file.refuse_at(0, "the schema names no map; write map = \"…\"".to_owned())),
        };
        let map = Name::parse(map).map_err(|error| file.refuse_at(at, error.to_string()))?;
        let mut tables = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (list, is_sharded) in [("sharded", true), ("reference", false)] {
            for (name, at, value) in entries(&file, list)? {
                let refuse = |what: String| file.refuse_at(at, format!("table {name:?}: {what}"));
                check_table_name(name).map_err(refuse)?;
                if let Some(other) = names.insert(name.to_lowercase(), name) {
                    return Err(refuse(same_name("table", other, name)));
                }
                if names.len() > TABLES_MAX {
                    return Err(refuse(format!("a schema has at most {TABLES_MAX} tables")));
                }
                let table =
                    value.as_table().ok_or_else(|| refuse("it must be a table of TOML".to_owned()))?;
                tables.insert(name.to_owned(), read_table(text, name, at, table, is_sharded)?);
            }
        }
        if tables.is_empty() {
            return Err(file.refuse_at(0, "the schema has no table; write [sharded.NAME]".to_owned()));
        }
        let schema = Schema { map, tables };
        schema.check_shard_keys(&file)?;
        Ok(schema)
    }

    /// All shard keys have one type: they are keys of one map.
    fn check_shard_keys(&self, file: &Section<'_>) -> Result<(), SettingsFileError> {
        let kinds = |table: &TableSchema| -> Vec<ColumnKind> {
            table.shard_key().iter().map(|index| table.columns[*index].kind).collect()
        };
        let mut sharded = self.tables().filter(|table| table.is_sharded());
        let Some(first) = sharded.next() else { return Ok(()) };
        match sharded.find(|table| kinds(table) != kinds(first)) {
            None => Ok(()),
            Some(other) => {
                let what = format!(
                    "the shard keys of the tables {:?} and {:?} have different types: {}, and {}",
                    first.name(),
                    other.name(),
                    kinds_text(&kinds(first)),
                    kinds_text(&kinds(other)),
                );
                Err(file.refuse("sharded", what))
            }
        }
    }
}

fn kinds_text(kinds: &[ColumnKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    format!("({})", names.join(", "))
}

fn same_name(what: &str, one: &str, other: &str) -> String {
    match one == other {
        true => format!("there are two {what}s of this name"),
        false => format!("its name differs from the {what} {one:?} only in case, which databases overlook"),
    }
}

/// The entries of a table whose keys are names: each with where it stands, in the order of the names.
fn entries<'a>(
    section: &Section<'a>,
    key: &'static str,
) -> Result<Vec<(&'a str, usize, &'a DeValue<'a>)>, SettingsFileError> {
    let Some((value, at)) = section.value(key) else { return Ok(Vec::new()) };
    let table = value.as_table().ok_or_else(|| section.wrong(key, at, "a table"))?;
    let entry = |(key, value): (&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| {
        (key.get_ref().as_ref(), key.span().start, value.get_ref())
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|(name, ..)| *name);
    Ok(entries)
}

/// Reads a table; `at` is where its name stands.
fn read_table<'a>(
    text: &'a str,
    name: &str,
    at: usize,
    table: &'a DeTable<'a>,
    is_sharded: bool,
) -> Result<TableSchema, SettingsFileError> {
    let (what, known): (_, &[_]) = match is_sharded {
        true => ("a sharded table", &["key", "primary_key", "columns"]),
        false => ("a reference table", &["primary_key", "columns"]),
    };
    let section = Section::new(text, what, table, known)?;
    let refuse = |at: usize, what: String| section.refuse_at(at, format!("table {name:?}: {what}"));
    let columns = read_columns(&section, name)?;
    if columns.is_empty() {
        return Err(refuse(at, "it has no columns; write columns = { NAME = \"TYPE\" }".to_owned()));
    }
    let shard_key = match is_sharded {
        true => key_columns(&section, name, at, "key", &columns)?,
        false => Vec::new(),
    };
    let primary_key = key_columns(&section, name, at, "primary_key", &columns)?;
    if let Some(index) = shard_key.iter().find(|index| !primary_key.contains(index)) {
        let column = &columns[*index].name;
        let why =
            "rows of two shards could have the same primary key, and a move would replace one by the other";
        return Err(refuse(at, format!("its primary key does not hold {column:?} of the shard key: {why}")));
    }
    let rest = primary_key.iter().filter(|index| !shard_key.contains(index));
    let row_key: Vec<usize> = shard_key.iter().chain(rest).copied().collect();
    let kinds: Vec<KeyKind> = row_key.iter().filter_map(|index| columns[*index].kind.key_kind()).collect();
    let row_key_type = KeyType::new(kinds).map_err(|error| refuse(at, error.to_string()))?;
    let shard_key_count = shard_key.len();
    Ok(TableSchema { name: name.to_owned(), columns, row_key, shard_key_count, primary_key, row_key_type })
}

/// Columns in the order of their names.
fn read_columns(section: &Section<'_>, table: &str) -> Result<Vec<Column>, SettingsFileError> {
    let mut columns: Vec<Column> = Vec::new();
    let mut names = BTreeMap::new();
    for (name, at, value) in entries(section, "columns")? {
        let refuse =
            |what: String| section.refuse_at(at, format!("column {name:?} of table {table:?}: {what}"));
        check_name(name).map_err(refuse)?;
        if let Some(other) = names.insert(name.to_lowercase(), name) {
            return Err(refuse(same_name("column", other, name)));
        }
        if names.len() > TABLE_COLUMNS_MAX {
            return Err(refuse(format!("a table has at most {TABLE_COLUMNS_MAX} columns")));
        }
        let declared =
            value.as_str().ok_or_else(|| refuse("its type must be a text, in quotes".to_owned()))?;
        let (kind, is_nullable) = column_type(declared).map_err(refuse)?;
        columns.push(Column { name: name.to_owned(), kind, is_nullable });
    }
    Ok(columns)
}

/// A kind, and whether the column may be NULL: `text`, or `text null`.
fn column_type(declared: &str) -> Result<(ColumnKind, bool), String> {
    let (name, is_nullable) = match declared.split_once(' ') {
        None => (declared, false),
        Some((name, NULLABLE)) => (name, true),
        Some((_, rest)) => {
            return Err(format!("behind its type may be {NULLABLE:?}, and {rest:?} is there"));
        }
    };
    let names = || ColumnKind::ALL.iter().map(|kind| kind.name());
    let kind = ColumnKind::named(name).ok_or_else(|| {
        let meant = meant(name, names());
        match meant.is_empty() {
            true => format!("{name:?} is no type; there are {}", names().collect::<Vec<_>>().join(", ")),
            false => format!("{name:?} is no type{meant}"),
        }
    })?;
    Ok((kind, is_nullable))
}

/// The columns of a key, by their place.
fn key_columns(
    section: &Section<'_>,
    table: &str,
    table_at: usize,
    key: &'static str,
    columns: &[Column],
) -> Result<Vec<usize>, SettingsFileError> {
    let (names, at) = section.texts(key)?;
    if names.is_empty() {
        let what = format!("table {table:?}: it has no {key}; write {key} = \"COLUMN\"");
        return Err(section.refuse_at(table_at, what));
    }
    let refuse = |what: String| section.refuse_at(at, format!("{key} of table {table:?}: {what}"));
    let mut places = Vec::new();
    for name in names {
        let Some(place) = columns.iter().position(|column| column.name == name) else {
            let meant = meant(name, columns.iter().map(|column| column.name.as_str()));
            return Err(refuse(format!("there is no column {name:?}{meant}")));
        };
        let column = &columns[place];
        if places.contains(&place) {
            return Err(refuse(format!("it has the column {name:?} twice")));
        }
        if column.is_nullable {
            return Err(refuse(format!(
                "the column {name:?} may be NULL, and a key has a value for each row"
            )));
        }
        if column.kind.key_kind().is_none() {
            let kinds: Vec<&str> = KeyKind::ALL.iter().map(|kind| kind.name()).collect();
            let kind = column.kind;
            let what = format!("the column {name:?} is {kind}, and columns of keys are {}", kinds.join(", "));
            return Err(refuse(what));
        }
        places.push(place);
    }
    Ok(places)
}

#[cfg(test)]
mod tests;
