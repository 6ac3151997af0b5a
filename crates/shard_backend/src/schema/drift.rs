//! Drift: how the tables that a database has differ from those that are declared.
//!
//! What always holds: each difference names its table and column; without one, every declared row can be
//! read, written and identified, and nothing of a row is left out of moves and digests. Tables that are not
//! declared are none of our business. Names are compared with their case.

use super::schema::Schema;
use super::table::TableSchema;
use crate::value::column_kind::ColumnKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The tables that a database has, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActualSchema {
    /// The tables.
    pub tables: BTreeMap<String, ActualTable>,
}

/// A table that a database has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActualTable {
    /// Its columns, by their names.
    pub columns: BTreeMap<String, ActualColumn>,
    /// The columns of its primary key, in its order; empty if it has none.
    pub primary_key: Vec<String>,
}

/// A column that a database has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActualColumn {
    /// Its type, as the database calls it.
    pub type_text: String,
    /// The kinds that it can hold: a type of a database may serve for several.
    pub kinds: Vec<ColumnKind>,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// What the database compares its texts by, if that is not their bytes.
    pub collation: Option<String>,
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drift {
    /// The declared table.
    pub table: String,
    /// What differs.
    pub kind: DriftKind,
}

/// What differs in a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriftKind {
    /// There is no such table.
    MissingTable,
    /// Another primary key: columns, whatever their order.
    OtherPrimaryKey {
        /// As it was declared.
        declared: Vec<String>,
        /// As it is.
        actual: Vec<String>,
    },
    /// There is no such column.
    MissingColumn(String),
    /// A column's type can't hold its kind.
    OtherType {
        /// The column.
        column: String,
        /// As it was declared.
        declared: ColumnKind,
        /// As the database calls it.
        actual: String,
    },
    /// A column that may be NULL on one side only.
    OtherNull {
        /// The column.
        column: String,
        /// Whether the declared one may.
        declared: bool,
    },
    /// A column of the primary key whose texts are not compared by their bytes: two keys could be one.
    OtherCollation {
        /// The column.
        column: String,
        /// As the database calls it.
        actual: String,
    },
    /// A column that is not declared: moves would lose its values, and digests would not see them.
    AdditionalColumn(String),
}

/// All differences, in the order of tables, the declared columns first.
pub fn drift(declared: &Schema, actual: &ActualSchema) -> Vec<Drift> {
    let mut found = Vec::new();
    for table in declared.tables() {
        let kinds = match actual.tables.get(table.name()) {
            None => vec![DriftKind::MissingTable],
            Some(actual) => table_drift(table, actual),
        };
        found.extend(kinds.into_iter().map(|kind| Drift { table: table.name().to_owned(), kind }));
    }
    found
}

fn table_drift(declared: &TableSchema, actual: &ActualTable) -> Vec<DriftKind> {
    let mut found = Vec::new();
    let primary_key: Vec<String> =
        declared.primary_key().iter().map(|index| declared.columns()[*index].name.clone()).collect();
    let as_set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    if as_set(&primary_key) != as_set(&actual.primary_key) {
        let actual = actual.primary_key.clone();
        found.push(DriftKind::OtherPrimaryKey { declared: primary_key.clone(), actual });
    }
    for column in declared.columns() {
        let name = column.name.clone();
        let Some(there) = actual.columns.get(&name) else {
            found.push(DriftKind::MissingColumn(name));
            continue;
        };
        if !there.kinds.contains(&column.kind) {
            let actual = there.type_text.clone();
            found.push(DriftKind::OtherType { column: name.clone(), declared: column.kind, actual });
        }
        if there.is_nullable != column.is_nullable {
            found.push(DriftKind::OtherNull { column: name.clone(), declared: column.is_nullable });
        }
        if let Some(collation) = there.collation.as_ref().filter(|_| primary_key.contains(&name)) {
            found.push(DriftKind::OtherCollation { column: name, actual: collation.clone() });
        }
    }
    let is_declared = |name: &String| declared.columns().iter().any(|column| column.name == *name);
    let additional = actual.columns.keys().filter(|name| !is_declared(name));
    found.extend(additional.map(|name| DriftKind::AdditionalColumn(name.clone())));
    found
}

impl fmt::Display for Drift {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "table `{}`: ", self.table)?;
        match &self.kind {
            DriftKind::MissingTable => out.write_str("it is missing"),
            DriftKind::OtherPrimaryKey { declared, actual } if actual.is_empty() => {
                write!(out, "it has no primary key, and ({}) is declared", declared.join(", "))
            }
            DriftKind::OtherPrimaryKey { declared, actual } => {
                let (declared, actual) = (declared.join(", "), actual.join(", "));
                write!(out, "its primary key is ({actual}), and ({declared}) is declared")
            }
            DriftKind::MissingColumn(column) => write!(out, "the column `{column}` is missing"),
            DriftKind::OtherType { column, declared, actual } => {
                write!(out, "the column `{column}` has the type {actual:?}, which can't hold {declared}")
            }
            DriftKind::OtherNull { column, declared: true } => {
                write!(out, "the column `{column}` can't be NULL, and is declared so that it can")
            }
            DriftKind::OtherNull { column, declared: false } => {
                write!(out, "the column `{column}` can be NULL, and is declared so that it can't")
            }
            DriftKind::OtherCollation { column, actual } => {
                write!(out, "the column `{column}` of its primary key is compared by {actual}, not by bytes")
            }
            DriftKind::AdditionalColumn(column) => {
                write!(out, "the column `{column}` is not declared, so moves would lose it")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> Schema {
        Schema::parse(
            "map = \"m\"\n[sharded.t]\nkey = \"k\"\nprimary_key = [\"k\", \"n\"]\n\
             columns = { k = \"text\", n = \"int64\", note = \"text null\" }\n\
             [reference.r]\nprimary_key = \"c\"\ncolumns = { c = \"guid\" }\n",
        )
        .expect("a schema")
    }

    fn column(type_text: &str, kinds: &[ColumnKind], is_nullable: bool) -> ActualColumn {
        ActualColumn { type_text: type_text.to_owned(), kinds: kinds.to_vec(), is_nullable, collation: None }
    }

    fn actual() -> ActualSchema {
        let text = |is_nullable| column("TEXT", &[ColumnKind::Text, ColumnKind::DateTime], is_nullable);
        let number = column("INTEGER", &[ColumnKind::Int32, ColumnKind::Int64], false);
        let name = str::to_owned;
        let t = ActualTable {
            columns: [(name("k"), text(false)), (name("n"), number), (name("note"), text(true))].into(),
            primary_key: vec![name("n"), name("k")],
        };
        let r = ActualTable {
            columns: [(name("c"), column("BLOB", &[ColumnKind::Binary, ColumnKind::Guid], false))].into(),
            primary_key: vec![name("c")],
        };
        let other = ActualTable::default();
        ActualSchema { tables: [(name("t"), t), (name("r"), r), (name("another"), other)].into() }
    }

    /// What changes a table of a database.
    type Change = fn(&mut ActualTable);

    #[test]
    fn each_difference_is_found_by_name() {
        assert_eq!(drift(&declared(), &actual()), []);
        let changes: [(Change, &str); 9] = [
            (|t| drop(t.columns.remove("note")), "the column `note` is missing"),
            (
                |t| t.columns.get_mut("n").expect("it").kinds.clear(),
                "the column `n` has the type \"INTEGER\", which can't hold int64",
            ),
            (
                |t| t.columns.get_mut("note").expect("it").is_nullable = false,
                "the column `note` can't be NULL, and is declared so that it can",
            ),
            (
                |t| t.columns.get_mut("n").expect("it").is_nullable = true,
                "the column `n` can be NULL, and is declared so that it can't",
            ),
            (
                |t| t.columns.get_mut("k").expect("it").collation = Some("NOCASE".to_owned()),
                "the column `k` of its primary key is compared by NOCASE, not by bytes",
            ),
            (
                |t| drop(t.columns.insert("more".to_owned(), column("X", &[], true))),
                "the column `more` is not declared, so moves would lose it",
            ),
            (|t| t.primary_key.clear(), "it has no primary key, and (k, n) is declared"),
            (|t| drop(t.primary_key.pop()), "its primary key is (n), and (k, n) is declared"),
            // Collations of other columns decide nothing.
            (|t| t.columns.get_mut("note").expect("it").collation = Some("NOCASE".to_owned()), ""),
        ];
        for (change, expected) in changes {
            let mut actual = actual();
            change(actual.tables.get_mut("t").expect("the table"));
            let found: Vec<String> = drift(&declared(), &actual).iter().map(ToString::to_string).collect();
            let expected = (!expected.is_empty()).then(|| format!("table `t`: {expected}"));
            assert_eq!(found, Vec::from_iter(expected));
        }
        let mut without = actual();
        without.tables.remove("r");
        let found = drift(&declared(), &without);
        assert_eq!(found[0].to_string(), "table `r`: it is missing");
    }
}
