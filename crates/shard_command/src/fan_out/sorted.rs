//! The order of values, and rows in it.
//!
//! What always holds: the order is total: NULL is before all values, NaN behind all numbers; texts and bytes
//! are compared by bytes; rows of equal values are in the order of their keys.

use shard_backend::{Row, RowKey, Value};
use std::cmp::Ordering;

/// Compares two values of one kind; none with NULL, of two kinds, or with NaN.
pub(super) fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        (Value::Float64(one), Value::Float64(other)) => one.partial_cmp(other),
        (one, other) if one.kind() == other.kind() => Some(one.key_value()?.cmp(&other.key_value()?)),
        _ => None,
    }
}

/// A value that is compared with others of its column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ordered(pub(super) Value);

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        compare(&self.0, &other.0)
    }
}

/// A row and what it is sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SortedRow {
    /// None: by the key alone.
    pub(super) by: Option<Value>,
    pub(super) is_descending: bool,
    pub(super) key: RowKey,
    pub(super) row: Row,
}

impl SortedRow {
    /// What a merge compares.
    pub(super) fn sort_key(&self) -> SortKey {
        SortKey { by: self.by.clone(), is_descending: self.is_descending, key: self.key.clone() }
    }
}

/// What rows are sorted by.
#[derive(Clone, Debug)]
pub(super) struct SortKey {
    by: Option<Value>,
    is_descending: bool,
    key: RowKey,
}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let by = match (&self.by, &other.by) {
            (Some(one), Some(other)) => compare(one, other).unwrap_or_else(|| rank(one).cmp(&rank(other))),
            _ => Ordering::Equal,
        };
        let order = by.then_with(|| self.key.cmp(&other.key));
        if self.is_descending { order.reverse() } else { order }
    }
}

/// Where values are that can't be compared with others.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Float64(number) if number.is_nan() => 2,
        _ => 1,
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SortKey {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_a_value_and_then_by_their_keys() {
        let key = |by: Option<Value>, number: i32, is_descending| SortKey {
            by,
            is_descending,
            key: RowKey { values: vec![number.into()] },
        };
        let of = |value: Value, number| key(Some(value), number, false);
        let float = Value::Float64;
        let sorted = [
            of(Value::Null, 1),
            of(Value::Null, 2),
            of(float(f64::NEG_INFINITY), 0),
            of(float(-1.0), 9),
            of(float(2.0), 1),
            of(float(2.0), 3),
            of(float(f64::INFINITY), 0),
            of(float(f64::NAN), 0),
            of(float(f64::NAN), 1),
        ];
        assert!(sorted.is_sorted_by(|one, other| one < other), "{sorted:?}");
        assert!(of("a".into(), 2) < of("é".into(), 1) && of("Z".into(), 1) < of("a".into(), 1));
        assert!(key(None, 1, false) < key(None, 2, false) && key(None, 2, true) < key(None, 1, true));
        let descending = |value: Value, number| key(Some(value), number, true);
        assert!(descending(2.into(), 1) < descending(1.into(), 2));
        assert_eq!(compare(&Value::Bool(false), &Value::Bool(true)), Some(Ordering::Less));
        assert_eq!(compare(&1_i32.into(), &1_i64.into()), None);
    }
}
