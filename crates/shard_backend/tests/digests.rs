//! Digests of random sets of rows: the same in any order and in any parts; another one if anything differs.

use proptest::prelude::*;
use shard_backend::{DigestKey, Row, RowHasher, Schema, TableDigest, TableSchema, Value};
use std::collections::BTreeMap;

fn table() -> TableSchema {
    let schema = Schema::parse(
        "map = \"m\"\n[sharded.t]\nkey = \"k\"\nprimary_key = \"k\"\n\
         columns = { k = \"int32\", a = \"text null\", b = \"float64\", c = \"text null\" }",
    );
    schema.expect("a schema").table("t").expect("the table").clone()
}

/// Values in the order of the columns' names: a, b, c, k.
fn row(key: i32, (a, b, c): (Option<String>, f64, Option<String>)) -> Row {
    let text = |text: Option<String>| text.map_or(Value::Null, Value::Text);
    Row { values: vec![text(a), Value::Float64(b), text(c), Value::Int32(key)] }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let float = prop_oneof![any::<f64>(), Just(f64::NAN), Just(-0.0), Just(0.0)];
    let text = || proptest::option::of("[ab]{0,2}");
    let rest = (text(), float, text());
    let map = proptest::collection::btree_map(any::<i32>(), rest, 2..20);
    map.prop_map(|rows: BTreeMap<_, _>| rows.into_iter().map(|(key, rest)| row(key, rest)).collect())
}

fn digest<'a>(rows: impl IntoIterator<Item = &'a Row>) -> TableDigest {
    let mut hasher = RowHasher::new(&DigestKey::new([5; 16]), &table());
    let mut digest = TableDigest::default();
    rows.into_iter().for_each(|row| digest.add(hasher.hash(row)));
    digest
}

proptest! {
    #[test]
    fn order_and_parts_do_not_matter(rows in rows(), at: prop::sample::Index, cut: prop::sample::Index) {
        let whole = digest(&rows);
        let mut turned = rows.clone();
        turned.rotate_left(at.index(rows.len()));
        prop_assert_eq!(digest(&turned), whole);
        turned.reverse();
        prop_assert_eq!(digest(&turned), whole);
        let (one, other) = turned.split_at(cut.index(rows.len()));
        let mut merged = digest(one);
        merged.merge(&digest(other));
        prop_assert_eq!(merged, whole);
        let mut removed = whole;
        let mut hasher = RowHasher::new(&DigestKey::new([5; 16]), &table());
        other.iter().for_each(|row| removed.remove(hasher.hash(row)));
        prop_assert_eq!(removed, digest(one));
    }

    #[test]
    fn what_differs_changes_the_digest(rows in rows(), at: prop::sample::Index, by: prop::sample::Index, column in 0..3_usize) {
        let whole = digest(&rows);
        let at = at.index(rows.len());
        let mut deleted = rows.clone();
        let row = deleted.remove(at);
        prop_assert_ne!(digest(&deleted).sum, whole.sum);
        let mut doubled = rows.clone();
        doubled.push(row);
        prop_assert_ne!(digest(&doubled).sum, whole.sum);
        // A row twice in the place of another: the count is the same.
        let other = (at + 1 + by.index(rows.len() - 1)) % rows.len();
        let mut replaced = rows.clone();
        replaced[other] = replaced[at].clone();
        prop_assert_ne!(digest(&replaced).sum, whole.sum);
        let mut changed = rows.clone();
        changed[at].values[column] = match (&changed[at].values[column], column) {
            (Value::Float64(number), _) if *number == 1.0 => Value::Float64(2.0),
            (_, 1) => Value::Float64(1.0),
            (Value::Null, _) => Value::Text(String::new()),
            _ => Value::Null,
        };
        prop_assert_ne!(digest(&changed).sum, whole.sum);
        // The values of a column of two rows, and of two columns of a row, in each other's place.
        let mut swapped = rows.clone();
        let value = swapped[at].values[column].clone();
        let other_value = std::mem::replace(&mut swapped[other].values[column], value.clone());
        swapped[at].values[column] = other_value.clone();
        prop_assert_eq!(digest(&swapped).sum == whole.sum, value == other_value);
        let mut crossed = rows.clone();
        crossed[at].values.swap(0, 2);
        prop_assert_eq!(digest(&crossed).sum == whole.sum, rows[at].values[0] == rows[at].values[2]);
    }
}

#[test]
fn another_key_is_another_digest() {
    let row = row(1, (None, 0.5, None));
    let hash = |byte| RowHasher::new(&DigestKey::new([byte; 16]), &table()).hash(&row);
    assert_ne!(hash(1), hash(2));
}
