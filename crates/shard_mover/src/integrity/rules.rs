//! Rules of integrity out of their TOML.
//!
//! ```toml
//! tables = ["orders", "customers"]     # rows and keys of these are checked; else of all sharded tables
//! foreign = true                       # rows on a shard to which the map does not route them
//! duplicates = true                    # rows of one key on two shards
//!
//! [orphans.customer-of-order]          # rows whose columns refer to no row of another table
//! child = "orders"
//! columns = ["tenant", "customer"]     # in the order of the parent's primary key; NULL refers to nothing
//! parent = "customers"
//! ```
//!
//! What always holds: the first mistake is one error with its line; an unknown key, table or column is named
//! with the nearest that there is. A rule that was read fits its schema.

use settings_file::{Section, SettingsFileError, meant, parse};
use shard_backend::{Schema, TableSchema};
use std::collections::BTreeMap;

/// Rules of orphans in a file, at most.
const ORPHAN_RULES_MAX: usize = 100;

/// Rules of integrity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Tables whose rows and keys are checked, in the order of their names.
    pub(crate) tables: Vec<String>,
    /// Whether rows are to be where the map routes them.
    pub(crate) foreign: bool,
    /// Whether a key is to be on one shard.
    pub(crate) duplicates: bool,
    pub(crate) orphans: Vec<OrphanRule>,
}

/// A reference of a table's rows to those of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrphanRule {
    pub(crate) name: String,
    pub(crate) child: String,
    /// Columns of the child, by their place, in the order of the parent's primary key.
    pub(crate) columns: Vec<usize>,
    pub(crate) parent: String,
}

impl Rules {
    /// Rows where the map routes them and keys on one shard, of all sharded tables; no references.
    pub fn of_placement(schema: &Schema) -> Self {
        let tables = schema.tables().filter(|table| table.is_sharded());
        let tables = tables.map(|table| table.name().to_owned()).collect();
        Rules { tables, foreign: true, duplicates: true, orphans: Vec::new() }
    }

    /// Reads the rules of a schema's tables.
    pub fn parse(text: &str, schema: &Schema) -> Result<Self, SettingsFileError> {
        let parsed = parse(text)?;
        let known = &["tables", "foreign", "duplicates", "orphans"];
        let file = Section::new(text, "the rules", parsed.get_ref(), known)?;
        let mut rules = Rules::of_placement(schema);
        let (named, at) = file.texts("tables")?;
        if !named.is_empty() {
            rules.tables = tables(&file, at, &named, schema)?;
        }
        rules.foreign = file.flag("foreign")?.unwrap_or(true);
        rules.duplicates = file.flag("duplicates")?.unwrap_or(true);
        rules.orphans = orphan_rules(text, &file, schema)?;
        Ok(rules)
    }
}

fn tables(
    file: &Section<'_>,
    at: usize,
    named: &[&str],
    schema: &Schema,
) -> Result<Vec<String>, SettingsFileError> {
    let mut tables = Vec::new();
    for name in named {
        if !find(file, at, schema, name)?.is_sharded() {
            let what = format!("tables: {name:?} is a reference table, which all shards have");
            return Err(file.refuse_at(at, what));
        }
        tables.push((*name).to_owned());
    }
    tables.sort();
    tables.dedup();
    Ok(tables)
}

fn find<'a>(
    section: &Section<'_>,
    at: usize,
    schema: &'a Schema,
    name: &str,
) -> Result<&'a TableSchema, SettingsFileError> {
    schema.table(name).ok_or_else(|| {
        let meant = meant(name, schema.tables().map(TableSchema::name));
        section.refuse_at(at, format!("the schema has no table {name:?}{meant}"))
    })
}

fn orphan_rules(
    text: &str,
    file: &Section<'_>,
    schema: &Schema,
) -> Result<Vec<OrphanRule>, SettingsFileError> {
    let Some((value, at)) = file.value("orphans") else { return Ok(Vec::new()) };
    let table = value.as_table().ok_or_else(|| file.wrong("orphans", at, "a table"))?;
    if table.len() > ORPHAN_RULES_MAX {
        return Err(file.refuse_at(at, format!("there are at most {ORPHAN_RULES_MAX} rules of orphans")));
    }
    let mut rules = BTreeMap::new();
    for (name, value) in table {
        let (at, name) = (name.span().start, name.get_ref().as_ref());
        let wrong = || file.wrong(name, at, "a table");
        let entries = value.get_ref().as_table().ok_or_else(wrong)?;
        let section = Section::new(text, "a rule of orphans", entries, &["child", "columns", "parent"])?;
        rules.insert(name.to_owned(), orphan_rule(&section, name, at, schema)?);
    }
    Ok(rules.into_values().collect())
}

fn orphan_rule(
    section: &Section<'_>,
    name: &str,
    at: usize,
    schema: &Schema,
) -> Result<OrphanRule, SettingsFileError> {
    let table = |key: &'static str| {
        let missing = || section.refuse_at(at, format!("rule {name:?}: write {key} = \"TABLE\""));
        let (table, at) = section.text(key)?.ok_or_else(missing)?;
        find(section, at, schema, table)
    };
    let (child, parent) = (table("child")?, table("parent")?);
    if !child.is_sharded() {
        let what = format!("rule {name:?}: the child {:?} is a reference table", child.name());
        return Err(section.refuse("child", what));
    }
    let (names, columns_at) = section.texts("columns")?;
    let key = parent.primary_key();
    if names.len() != key.len() {
        let (given, wanted, parent) = (names.len(), column_names(parent, key), parent.name());
        let what =
            format!("rule {name:?}: columns has {given} columns, and the key of {parent:?} is {wanted}");
        return Err(section.refuse_at(if given == 0 { at } else { columns_at }, what));
    }
    let mut columns = Vec::new();
    for (column, of_key) in names.iter().zip(key) {
        let all = child.columns();
        let Some(place) = all.iter().position(|one| one.name == *column) else {
            let meant = meant(column, all.iter().map(|one| one.name.as_str()));
            let what = format!("rule {name:?}: table {:?} has no column {column:?}{meant}", child.name());
            return Err(section.refuse_at(columns_at, what));
        };
        let (kind, wanted) = (all[place].kind, &parent.columns()[*of_key]);
        if kind != wanted.kind {
            let (parent, of_parent, is) = (parent.name(), &wanted.name, wanted.kind);
            let what = format!(
                "rule {name:?}: column {column:?} is {kind}, and {of_parent:?} of {parent:?} is {is}"
            );
            return Err(section.refuse_at(columns_at, what));
        }
        columns.push(place);
    }
    let (child, parent) = (child.name().to_owned(), parent.name().to_owned());
    Ok(OrphanRule { name: name.to_owned(), child, columns, parent })
}

fn column_names(table: &TableSchema, places: &[usize]) -> String {
    let names: Vec<&str> = places.iter().map(|place| table.columns()[*place].name.as_str()).collect();
    format!("({})", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::parse(
            "map = \"m\"\n\
             [sharded.customers]\nkey = \"tenant\"\nprimary_key = [\"tenant\", \"customer\"]\n\
             columns = { tenant = \"int32\", customer = \"int32\" }\n\
             [sharded.orders]\nkey = \"tenant\"\nprimary_key = [\"tenant\", \"order\"]\n\
             columns = { tenant = \"int32\", order = \"int32\", customer = \"int32 null\", land = \"text\" }\n\
             [reference.lands]\nprimary_key = \"code\"\ncolumns = { code = \"text\" }\n",
        )
        .expect("a schema")
    }

    const RULE: &str = "[orphans.c]\nchild = \"orders\"\ncolumns = [\"tenant\", \"customer\"]\n";

    #[test]
    fn rules_are_read() {
        let schema = schema();
        assert_eq!(Rules::parse("", &schema), Ok(Rules::of_placement(&schema)));
        let text = format!("tables = \"orders\"\nforeign = false\n{RULE}parent = \"customers\"\n");
        let rules = Rules::parse(&text, &schema).expect("rules");
        assert_eq!((rules.tables, rules.foreign, rules.duplicates), (vec!["orders".to_owned()], false, true));
        // Columns are in the order of their names: customer, land, order, tenant.
        assert_eq!(rules.orphans[0].columns, [3, 0]);
    }

    #[test]
    fn mistakes_name_their_lines_and_the_nearest_name() {
        for (text, expected) in [
            ("foregn = true", "line 1: the rules has no key \"foregn\"; did you mean foreign?"),
            ("\ntables = [\"ordres\"]", "line 2: the schema has no table \"ordres\"; did you mean orders?"),
            ("tables = \"lands\"", "line 1: tables: \"lands\" is a reference table"),
            ("[orphans.c]\nchild = \"orders\"", "line 1: rule \"c\": write parent"),
            ("[orphans.c]\nchild = \"lands\"\nparent = \"lands\"", "line 2: rule \"c\": the child \"lands\""),
            (&format!("{RULE}parent = \"lands\""), "line 3: rule \"c\": columns has 2 columns"),
            (
                "[orphans.c]\nchild = \"orders\"\ncolumns = \"tenant\"\nparent = \"lands\"",
                "line 3: rule \"c\": column \"tenant\" is int32, and \"code\" of \"lands\" is text",
            ),
            (
                "[orphans.c]\nchild = \"orders\"\ncolumns = \"lant\"\nparent = \"lands\"",
                "line 3: rule \"c\": table \"orders\" has no column \"lant\"; did you mean land?",
            ),
        ] {
            let error = Rules::parse(text, &schema()).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
