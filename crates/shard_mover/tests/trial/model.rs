//! What may be there: for each row the last acknowledged text, and those of later writes whose outcome is
//! not known.
//!
//! What always holds: one writer changes a row, one change at a time; so what is known is exact.

use crate::settings::TEXT_CHARS;
use parking_lot::Mutex;
use shard_backend::Row;
use std::collections::BTreeMap;

/// A row: tenant and number.
pub(crate) type Key = (i64, i32);

/// What a row may be; none: deleted.
type Allowed = Vec<Option<String>>;

#[derive(Default)]
pub(crate) struct Model {
    rows: Mutex<BTreeMap<Key, Allowed>>,
}

impl Model {
    /// A change was acknowledged.
    pub(crate) fn done(&self, key: Key, label: Option<&str>) {
        self.rows.lock().insert(key, vec![label.map(str::to_owned)]);
    }

    /// A change may have been done.
    pub(crate) fn unknown(&self, key: Key, label: Option<&str>) {
        let mut rows = self.rows.lock();
        rows.entry(key).or_insert_with(|| vec![None]).push(label.map(str::to_owned));
    }

    /// All rows.
    pub(crate) fn all(&self) -> BTreeMap<Key, Allowed> {
        self.rows.lock().clone()
    }
}

/// The text of a label: as long as all are.
pub(crate) fn text_of(label: &str) -> String {
    format!("{label:.<TEXT_CHARS$}")
}

pub(crate) fn label_of(text: &str) -> &str {
    text.trim_end_matches('.')
}

/// Columns are in the order of their names: number, tenant, text.
pub(crate) fn row((tenant, number): Key, label: &str) -> Row {
    Row { values: vec![number.into(), tenant.into(), text_of(label).as_str().into()] }
}

/// The key and label of a row.
pub(crate) fn read_row(row: &Row) -> Option<(Key, &str)> {
    use shard_backend::Value::{Int32, Int64, Text};
    match row.values.as_slice() {
        [Int32(number), Int64(tenant), Text(text)] => Some(((*tenant, *number), label_of(text))),
        _ => None,
    }
}
