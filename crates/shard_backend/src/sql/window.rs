//! Which keys a statement reads: a lower and an upper condition on the first columns of the key.
//!
//! ```text
//! (k, n) > (7, 2) AND (k) <= (7)      the rows of pin 7 after key (7, 2)
//! (k) >= (10) AND (k) < (20)          the range from 10 to 20
//! ```
//!
//! What always holds: one condition a side, so that a database goes to the first row at once, however far a
//! scan is; the rows within are those of the shardlet's bounds, of which some may be of other shardlets.

use crate::backend::shardlet::Shardlet;
use crate::schema::table::TableSchema;
use crate::value::row::{RowError, RowKey};
use shard_map::{KeyValue, MappingId};

/// A comparison of the first columns of the key with values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// In SQL.
    pub(crate) comparison: &'static str,
    pub(crate) values: Vec<KeyValue>,
}

fn condition(comparison: &'static str, values: &[KeyValue]) -> Condition {
    Condition { comparison, values: values.to_vec() }
}

/// The conditions of a shardlet's rows after a key.
pub(crate) fn window(
    table: &TableSchema,
    shardlet: &Shardlet,
    after: Option<&RowKey>,
) -> Result<Vec<Condition>, RowError> {
    let low = table.row_key_type().bound(shardlet.low());
    let low = low.map_err(|error| RowError::Key { table: table.name().to_owned(), error })?;
    let mut found = Vec::new();
    match after {
        Some(after) if table.encode_key(after)?.as_bytes() >= low.as_bytes() => {
            found.push(condition(">", &after.values));
        }
        _ if !shardlet.low().is_empty() => found.push(condition(">=", shardlet.low())),
        _ => {}
    }
    // A pin's end as its key itself: the bound after it may be a value that a database has not.
    match (shardlet.mapping(), shardlet.high()) {
        (Some((_, MappingId::Pin(_))), _) => found.push(condition("<=", shardlet.low())),
        (_, Some(high)) => found.push(condition("<", high)),
        (_, None) => {}
    }
    Ok(found)
}

impl Condition {
    /// The same rows by values that a database has. `floor` gives the last one before a value that it has
    /// not.
    #[cfg(any(feature = "postgres", test))]
    pub(crate) fn rounded_down(mut self, floor: impl Fn(&KeyValue) -> Option<KeyValue>) -> Self {
        let cut = self.values.iter().enumerate().find_map(|(index, value)| Some((index, floor(value)?)));
        if let Some((index, before)) = cut {
            // No value of the database is in between, so what follows decides nothing.
            self.values.truncate(index);
            self.values.push(before);
            self.comparison = match self.comparison {
                ">=" => ">",
                "<" => "<=",
                other => other,
            };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::schema::Schema;
    use shard_map::{KeyKind, KeyType, MapBuilder, Name, Placement};
    use std::sync::Arc;

    #[test]
    fn a_scan_has_one_condition_a_side() {
        let name = |text| Name::parse(text).expect("a name");
        let mut map = MapBuilder::new(name("m"), KeyType::new([KeyKind::Int32]).expect("a type"));
        let here = || Placement::on(name("here"));
        map.range(&[], Some(&[10.into()]), here()).expect("a range");
        map.range(&[10.into()], Some(&[20.into()]), here()).expect("a range");
        map.range(&[20.into()], None, here()).expect("a range");
        map.pin(&[7.into()], here()).expect("a pin");
        let map = Arc::new(map.build().expect("a map"));
        let of = |key: i32| {
            let mapping = map.route(&[key.into()]).expect("a route").mapping;
            Shardlet::new(map.clone(), mapping).expect("a shardlet")
        };
        let schema = Schema::parse(
            "map = \"m\"\n[sharded.t]\nkey = \"k\"\nprimary_key = [\"k\", \"n\"]\n\
             columns = { k = \"int32\", n = \"int32\" }",
        );
        let schema = schema.expect("a schema");
        let table = schema.table("t").expect("the table");
        let shown = |shardlet: &Shardlet, after: Option<[i32; 2]>| {
            let after = after.map(|values| RowKey { values: values.map(KeyValue::Int32).into() });
            let conditions = window(table, shardlet, after.as_ref()).expect("a window");
            let texts = conditions.iter().map(|one| {
                let values: Vec<String> = one.values.iter().map(ToString::to_string).collect();
                format!("{} {}", one.comparison, values.join(" "))
            });
            texts.collect::<Vec<_>>().join(", ")
        };
        for (shardlet, after, expected) in [
            (of(7), None, ">= 7, <= 7"),
            (of(7), Some([7, 2]), "> 7 2, <= 7"),
            (of(7), Some([6, 2]), ">= 7, <= 7"),
            (of(12), None, ">= 10, < 20"),
            (of(12), Some([12, 2]), "> 12 2, < 20"),
            (of(12), Some([9, 2]), ">= 10, < 20"),
            (Shardlet::all(), None, ""),
            (Shardlet::all(), Some([1, 2]), "> 1 2"),
        ] {
            assert_eq!(shown(&shardlet, after), expected);
        }
    }

    #[test]
    fn values_that_a_database_has_not_are_compared_by_those_before() {
        let floor = |value: &KeyValue| match value {
            KeyValue::Int32(number) if number % 10 != 0 => Some(KeyValue::Int32(number - number % 10)),
            _ => None,
        };
        let numbers = |numbers: &[i32]| numbers.iter().copied().map(KeyValue::Int32).collect::<Vec<_>>();
        for (comparison, expected) in [(">=", ">"), (">", ">"), ("<", "<="), ("<=", "<=")] {
            let cut = condition(comparison, &numbers(&[10, 23, 30])).rounded_down(floor);
            assert_eq!(cut, condition(expected, &numbers(&[10, 20])));
            let whole = condition(comparison, &numbers(&[10, 20]));
            assert_eq!(whole.clone().rounded_down(floor), whole);
        }
    }
}
